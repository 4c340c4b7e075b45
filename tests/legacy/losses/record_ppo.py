"""Records iterations of PPO as an old Ray made them: the same samples in, which weights out.

Usage: `python record_ppo.py OUT [CASE …]`, with the Python of an environment that has Ray 1.13.0
and torch (it runs on Python 3.8). It writes `OUT/ppo-<case>.npz` and `OUT/minibatches.npz`;
`tests/unit/algorithms/test_ppo.py` compares.

A case holds, by name:

    config.*        the settings that matter, as the old Ray knew them
    chunk.<i>.*     chunks of episodes: obs (with the one after the last step), actions, rewards,
                    action_logp, action_dist_inputs, of an LSTM state_out_0 and state_out_1, and
                    whether the last step was `done`
    seed            of numpy and Python before each iteration, which draw the minibatches' order
    weights.*       before, by the old names
    after.<n>.*     the weights after each of two iterations, both on these samples (of an LSTM,
                    whose states would be old in the second, after one)
    told.<n>.*      what the result of each says: losses, KL, rates
    offsets         of several GPUs: where the minibatch of each optimizer step begins in the part
                    of the train batch that each GPU has, a row an iteration

`minibatches.npz` has padded sequences and their slices: `<i>.lengths`, `<i>.size` and, row by row,
the first sequence of each minibatch and the first that is none of it any more.

`agent_steps.json` has the learning rate of each of two policies in three iterations, with a
schedule and two agents that take each step; this starts no Ray. Ray 1.12.1 wrote one, too:
`python -c "import record_ppo; record_ppo.record_agent_steps('1.12.1')"`.
"""

import json
import random
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import gym
import numpy as np
import torch
from ray.rllib.agents.ppo import PPOTrainer, ppo
from ray.rllib.agents.ppo.ppo_torch_policy import PPOTorchPolicy
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.policy.sample_batch import SampleBatch
from ray.util.timer import _Timer
from recording import draw_weights, named, record_all, save, steps_of

SEED = 11
#: How long each sequence is where a recurrent policy takes one step.
ONE_STEP = torch.ones(1, dtype=torch.int32)
TOLD = (
    *("total_loss", "policy_loss", "vf_loss", "vf_explained_var", "kl", "entropy"),
    *("cur_lr", "entropy_coeff", "cur_kl_coeff"),
)
PASSES = {"train_batch_size": 50, "sgd_minibatch_size": 16}
DISCRETE = gym.spaces.Discrete(3)
BOX = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
#: Case → actions, settings.
CASES = {
    "discrete": (DISCRETE, {"num_sgd_iter": 3, "lr": 0.01, "kl_target": 0.0001}),
    "continuous": (
        BOX,
        {"num_sgd_iter": 2, "lr": 0.003, "grad_clip": 0.5, "vf_clip_param": 0.2, "lambda": 0.9},
    ),
    "schedules": (
        DISCRETE,
        {
            "num_sgd_iter": 2,
            "lr": 0.003,  # of the first iteration
            "lr_schedule": [[0, 0.01], [100, 0.001]],
            "entropy_coeff_schedule": [[0, 0.1], [100, 0.0]],
            "gamma": 0.9,
            "kl_coeff": 0.0,
        },
    ),
    "lstm": (DISCRETE, {"num_sgd_iter": 2, "lr": 0.01}),
    "simple": (
        DISCRETE,
        {"num_sgd_iter": 3, "lr": 0.01, "simple_optimizer": True, "vf_loss_coeff": 0.5},
    ),
    "two-gpus": (
        DISCRETE,
        {
            "num_sgd_iter": 3,
            "lr": 0.01,
            "sgd_minibatch_size": 13,
            "num_gpus": 2,
            "_fake_gpus": True,
        },
    ),
}
LAYERS = {"fcnet_hiddens": [8, 6], "fcnet_activation": "tanh", "vf_share_layers": False}
LSTM = {
    "fcnet_hiddens": [8],
    "fcnet_activation": "tanh",
    "vf_share_layers": True,
    "use_lstm": True,
    "lstm_cell_size": 6,
    "max_seq_len": 5,
}
#: The steps of each chunk, and whether its episode ended with it.
CHUNKS = ((17, False), (12, True), (20, False), (1, True))


def record(case):
    """Records one case."""
    actions, settings = CASES[case]
    config = dict(PPOTrainer.get_default_config(), framework="torch", num_gpus=0, num_workers=0)
    config.update({"simple_optimizer": False, **PASSES, **settings})
    recurrent = case == "lstm"
    config["model"] = dict(config["model"], **(LSTM if recurrent else LAYERS))
    policy = PPOTorchPolicy(gym.spaces.Box(-2.0, 2.0, (4,), np.float32), actions, config)
    drawn = np.random.RandomState(7)
    draw_weights(drawn, policy.model)
    found = {f"config.{name}": repr(value) for name, value in {**PASSES, **settings}.items()}
    found.update(named("weights", policy.get_weights()))
    found["seed"] = SEED
    chunks = [made_up(policy, drawn, actions, *chunk) for chunk in CHUNKS]
    for index, chunk in enumerate(chunks):
        chunk["eps_id"] = chunk["unroll_id"] = np.full(len(chunk), index)
        chunk["agent_index"] = np.zeros(len(chunk), int)
        found.update(steps_of(index, chunk))

    def sample(**_):
        """The same steps in each iteration, with what the critic expects by now."""
        made = []
        for chunk in chunks:
            if not recurrent:
                chunk["vf_preds"] = expected(policy, chunk)
            made.append(policy.postprocess_trajectory(chunk.copy()))
        return SampleBatch.concat_samples(made)

    ppo.synchronous_parallel_sample = sample
    trainer = trainer_of(policy, config)
    offsets, learn = [], policy.learn_on_loaded_batch

    def learn_from(offset, buffer_index):
        offsets.append(offset)
        return learn(offset, buffer_index)

    policy.learn_on_loaded_batch = learn_from
    for number in (1,) if recurrent else (1, 2):
        np.random.seed(SEED)
        random.seed(SEED)
        told = PPOTrainer.training_iteration(trainer)["default_policy"]["learner_stats"]
        found.update(named(f"told.{number}", {name: told[name] for name in TOLD}))
        found.update(named(f"after.{number}", policy.get_weights()))
    if config["num_gpus"]:
        found["offsets"] = np.reshape(offsets, (2, -1))
    return found


def trainer_of(policy, config):
    """What PPO's own iteration asks of a trainer, without a Ray that runs."""

    def learn(batch):
        (columns,) = batch.policy_batches.values()
        return {"default_policy": policy.learn_on_batch(columns)}

    worker = SimpleNamespace(
        policy_map={"default_policy": policy},
        get_policy=lambda *_: policy,
        get_policies_to_train=lambda *_: ["default_policy"],
        is_policy_to_train=lambda *_: True,
        learn_on_batch=learn,
        set_global_vars=policy.on_global_var_update,
    )
    workers = SimpleNamespace(local_worker=lambda: worker, remote_workers=list)
    return SimpleNamespace(
        config=config,
        workers=workers,
        get_policy=worker.get_policy,
        _by_agent_steps=False,
        _counters=defaultdict(int),
        _timers=defaultdict(_Timer),
    )


def made_up(policy, drawn, actions, steps, done):
    """A chunk of an episode, with what a policy adds while it samples."""
    obs = drawn.uniform(-2, 2, (steps + 1, 4)).astype(np.float32)
    if isinstance(actions, gym.spaces.Box):
        taken = drawn.randn(steps, 2).astype(np.float32)
    else:
        taken = drawn.randint(0, actions.n, steps)
    chunk = SampleBatch(
        {
            "obs": obs[:-1],
            "new_obs": obs[1:],
            "actions": taken,
            "rewards": drawn.uniform(-1, 2, steps).astype(np.float32),
            "dones": np.array([False] * (steps - 1) + [done]),
        }
    )
    with torch.no_grad():
        if policy.is_recurrent():
            logits = remembered(policy, chunk)
        else:
            logits, _ = policy.model(policy._lazy_tensor_dict(SampleBatch({"obs": chunk["obs"]})))
        chunk["action_dist_inputs"] = logits.numpy()
        acts = policy.dist_class(logits, policy.model)
        chunk["action_logp"] = acts.logp(torch.from_numpy(taken)).numpy()
    return chunk


def remembered(policy, chunk):
    """What a recurrent policy gives at each step; adds its states, and what its critic expects."""
    state = [torch.from_numpy(part)[None] for part in policy.get_initial_state()]
    logits, values, before, after = [], [], [], []
    for seen in torch.from_numpy(chunk["obs"]):
        before.append(state)
        given, state = policy.model({"obs": seen[None], "obs_flat": seen[None]}, state, ONE_STEP)
        after.append(state)
        logits.append(given)
        values.append(policy.model.value_function())
    for kind, states in (("in", before), ("out", after)):
        for index in (0, 1):
            chunk[f"state_{kind}_{index}"] = torch.cat([parts[index] for parts in states]).numpy()
    chunk["vf_preds"] = torch.cat(values).numpy()
    return torch.cat(logits)


def expected(policy, chunk):
    """What the critic expects before each step."""
    with torch.no_grad():
        policy.model(policy._lazy_tensor_dict(SampleBatch({"obs": chunk["obs"]})))
        return policy.model.value_function().numpy()


def record_minibatches():
    """Records which padded sequences the slices of a batch have."""
    drawn, found = np.random.RandomState(3), {}
    for index, (sequences, longest, size) in enumerate(((9, 5, 7), (20, 20, 100), (6, 4, 4))):
        lengths = drawn.randint(1, longest + 1, sequences)
        rows = np.repeat(np.arange(sequences), longest)
        batch = SampleBatch({"obs": rows, "seq_lens": lengths}, _zero_padded=True)
        batch.max_seq_len = longest
        slices = []
        for begin in range(0, len(batch) // size * size, size):
            taken = batch[begin : begin + size]["obs"]
            slices.append((taken[0], taken[-1] + 1) if len(taken) else (-1, -1))
        found.update({f"{index}.lengths": lengths, f"{index}.size": size})
        found[f"{index}.slices"] = np.array(slices)
    return found


class Pair(MultiAgentEnv):
    """Two agents take each of an episode's five steps."""

    observation_space, action_space = gym.spaces.Box(-1.0, 1.0, (3,), np.float32), DISCRETE

    def __init__(self, _):
        super().__init__()
        self._agent_ids = {0, 1}

    def seen(self):
        return {agent: np.zeros(3, np.float32) for agent in (0, 1)}

    def reset(self):
        self.at = 0
        return self.seen()

    def step(self, actions):
        self.at += 1
        return self.seen(), {0: 1.0, 1: 1.0}, {"__all__": self.at == 5}, {}


def record_agent_steps(out):
    """Records learning rates where there are more steps of agents than of the environment."""
    policy = (None, Pair.observation_space, Pair.action_space, {})
    config = {
        "env": Pair,
        "num_workers": 0,
        "framework": "torch",
        "train_batch_size": 20,
        "rollout_fragment_length": 10,
        "sgd_minibatch_size": 10,
        "num_sgd_iter": 1,
        "lr_schedule": [[0, 0.01], [100, 0.001]],
        "multiagent": {
            "policies": {"a": policy, "b": policy},
            "policy_mapping_fn": lambda agent, *_, **__: "ab"[agent],
        },
    }
    trainer = PPOTrainer(config=config)
    results = [trainer.train()["info"]["learner"] for _ in range(3)]
    told = [{name: one["learner_stats"]["cur_lr"] for name, one in r.items()} for r in results]
    Path(out, "agent_steps.json").write_text(json.dumps(told, sort_keys=True) + "\n")


if __name__ == "__main__":
    save("minibatches", record_minibatches())
    record_agent_steps(sys.argv[1])
    record_all(record, CASES, "ppo-")
