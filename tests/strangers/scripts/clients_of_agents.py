"""A simulator of two agents that asks a server for actions, here from a thread of its own."""

import socket
import threading

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.policy_client import PolicyClient
from ray.rllib.env.policy_server_input import PolicyServerInput

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = free.getsockname()[1]

SEES = gym.spaces.Box(-9, 9, (2,), np.float32)
DOES = {"pump": gym.spaces.Discrete(3), "valve": gym.spaces.Box(-1, 1, (1,), np.float32)}
heard = {"actions": set(), "shapes": set(), "errors": []}
over = threading.Event()


def simulate():
    client = PolicyClient("http://127.0.0.1:%d" % PORT, inference_mode="remote")
    while not over.is_set():
        episode = client.start_episode()
        for second in range(5):
            seen = {agent: np.full(2, second, np.float32) for agent in DOES}
            actions = client.get_action(episode, seen)
            heard["actions"] |= set(actions)
            heard["shapes"].add(np.shape(actions["valve"]))
            client.log_returns(episode, {"pump": 1.0, "valve": 0.5 * second})
        client.end_episode(episode, {agent: np.full(2, 5, np.float32) for agent in DOES})


def run():
    try:
        simulate()
    except Exception as error:  # the server is gone when the trainer is
        if not over.is_set():
            heard["errors"].append(repr(error))


ray.init()
trainer = PPOTrainer(
    config={
        "env": None,
        "observation_space": SEES,
        "action_space": DOES["pump"],
        "input": lambda ioctx: PolicyServerInput(ioctx, "127.0.0.1", PORT),
        "input_evaluation": [],
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 50,
        "train_batch_size": 50,
        "sgd_minibatch_size": 25,
        "num_sgd_iter": 1,
        "multiagent": {
            "policies": {name: (None, SEES, space, {}) for name, space in DOES.items()},
            "policy_mapping_fn": lambda agent_id, *_, **__: agent_id,
        },
    },
)
threading.Thread(target=run, daemon=True).start()
results = [trainer.train() for _ in range(2)]
over.set()
record(
    agents=heard["actions"],
    shapes=[list(shape) for shape in heard["shapes"]],
    errors=heard["errors"],
    enough=[result["timesteps_total"] >= 50 * (n + 1) for n, result in enumerate(results)],
    learned=sorted(results[-1]["info"]["learner"]),
)
trainer.stop()
