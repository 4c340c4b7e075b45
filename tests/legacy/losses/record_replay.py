"""Records what an old Ray replayed and how it explored, step by step.

Usage: `python record_replay.py OUT`, with the Python of an environment that has Ray 1.13.0 and
torch (it runs on Python 3.8). It writes `OUT/replay/<case>.npz`;
`tests/unit/algorithms/test_old_replay.py` compares.

    n-step.npz      <n>.<i>.*: what became of chunk i for `n_step` n: obs, actions, rewards,
                    new_obs, dones; chunk.<i>.*: rewards, and whether its last step was `done`
    priorities.npz  `config.*`; <round>.added: how many steps there were then; .places, .weights:
                    what was drawn and how much it counted; .errors: its TD errors; .powers: what
                    each step's priority to the power of alpha is after that
    epsilon.npz     config.*; fragments: how many steps each sample had; epsilons: of each step
"""

import sys
from pathlib import Path

import gym
import numpy as np
import torch
from ray.rllib.agents.dqn import dqn
from ray.rllib.agents.dqn.dqn_torch_policy import DQNTorchPolicy
from ray.rllib.evaluation.rollout_worker import RolloutWorker
from ray.rllib.execution.buffers.multi_agent_replay_buffer import MultiAgentReplayBuffer
from ray.rllib.policy.sample_batch import SampleBatch
from record_targets import Walk
from recording import copied, save

SEEN, ACTIONS = gym.spaces.Box(-100.0, 100.0, (2,), np.float32), gym.spaces.Discrete(3)
#: The steps of each fragment, and whether its episode ended with it.
CHUNKS = ((4, False), (4, False), (3, True), (1, False), (4, True), (2, False))
POLICY = "default_policy"


def config_of(**settings):
    config = dict(dqn.DEFAULT_CONFIG)
    config.update(settings, framework="torch", num_gpus=0, num_workers=0)
    config["model"] = dict(config["model"], fcnet_hiddens=[4])
    return config


def policy_of(**settings):
    return DQNTorchPolicy(SEEN, ACTIONS, config_of(**settings))


def chunk(drawn, index, steps, done):
    seen = np.array([[index, step] for step in range(steps + 1)], np.float32)
    return SampleBatch(
        {
            "obs": seen[:-1],
            "new_obs": seen[1:],
            "actions": np.arange(steps) % 3,
            "rewards": drawn.randint(-4, 5, steps).astype(np.float32),
            "dones": np.array([False] * (steps - 1) + [done]),
            "eps_id": np.full(steps, index),
        }
    )


def record_n_step():
    """Records which transitions fragments become."""
    found, drawn = {}, np.random.RandomState(3)
    chunks = [chunk(drawn, index, *told) for index, told in enumerate(CHUNKS)]
    for index, each in enumerate(chunks):
        found[f"chunk.{index}.rewards"] = np.array(each["rewards"])
        found[f"chunk.{index}.done"] = each["dones"][-1]
    for n_step in (1, 3):
        policy = policy_of(n_step=n_step, gamma=0.5)
        for index, each in enumerate(chunks):
            made = policy.postprocess_trajectory(SampleBatch(copied(each)))
            for name in ("obs", "actions", "rewards", "new_obs", "dones"):
                found[f"{n_step}.{index}.{name}"] = np.array(made[name])
    return found


def record_priorities():
    """Records what is drawn, what it counts, and which priority it has after that."""
    settings = {"alpha": 0.6, "beta": 0.4, "eps": 1e-6, "capacity": 16}
    found, drawn, policy = {}, np.random.RandomState(3), policy_of()
    found.update({f"config.{name}": repr(value) for name, value in settings.items()})
    buffer = MultiAgentReplayBuffer(
        capacity=settings["capacity"],
        learning_starts=0,
        replay_batch_size=6,
        prioritized_replay_alpha=settings["alpha"],
        prioritized_replay_beta=settings["beta"],
        prioritized_replay_eps=settings["eps"],
    )
    added = 0
    for number, steps in enumerate((8, 4, 6, 3)):  # the capacity is reached in the third
        buffer.add_batch(policy.postprocess_trajectory(chunk(drawn, number, steps, True)))
        added += steps
        batch = buffer.replay().policy_batches[POLICY]
        errors = (drawn.randn(len(batch)) * 5).astype(np.float32)
        buffer.update_priorities({POLICY: (batch["batch_indexes"], errors)})
        sums = buffer.replay_buffers[POLICY]._it_sum
        told = {
            "added": added,
            "places": batch["batch_indexes"],
            "weights": batch["weights"],
            "errors": errors,
            "powers": [sums[place] for place in range(min(added, settings["capacity"]))],
        }
        found.update({f"{number}.{name}": np.array(value) for name, value in told.items()})
    return found


def record_epsilon():
    """Records epsilon at each step of a worker, as DQN's iteration tells it what was sampled."""
    exploration = {
        "type": "EpsilonGreedy",
        "initial_epsilon": 0.9,
        "final_epsilon": 0.1,
        "epsilon_timesteps": 10,
    }
    config = config_of(exploration_config=exploration)
    worker = RolloutWorker(
        env_creator=lambda _: Walk({"discrete": True}),
        policy_spec=DQNTorchPolicy,
        policy_config=config,
        rollout_fragment_length=4,
    )
    explored, exploring = [], worker.policy_map[POLICY].exploration
    schedule = exploring.epsilon_schedule

    def see(at):
        explored.append(float(schedule(at)))
        return explored[-1]

    exploring.epsilon_schedule = see
    fragments, sampled = [], 0
    for _ in range(4):
        fragments.append(worker.sample().count)
        sampled += fragments[-1]
        worker.set_global_vars({"timestep": sampled})
    told = {f"config.{name}": repr(value) for name, value in exploration.items()}
    return {**told, "fragments": np.array(fragments), "epsilons": np.array(explored)}


if __name__ == "__main__":
    torch.manual_seed(7)
    Path(sys.argv[1], "replay").mkdir(exist_ok=True)
    for record in (record_n_step, record_priorities, record_epsilon):
        save("replay/" + record.__name__[len("record_") :].replace("_", "-"), record())
