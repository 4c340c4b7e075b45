#!/usr/bin/env python
"""Write the cases of `groups/`: QMIX on its two-step game, with Ray 1.13.0 and torch.

    python generate_qmix.py OUT [--cases NAME ...]

They hold what `generate.py` says, but `expected.npz` has a sequence of observations of both
agents, and what the network and the mixer say of it, with those of the targets.
"""

from pathlib import Path

import generate
import numpy as np
import torch
from ray.rllib.agents.qmix import QMixTrainer
from ray.rllib.agents.qmix.qmix_policy import _mac
from ray.rllib.examples.env.two_step_game import TwoStepGameWithGroupedAgents

STEPS = 6
CASES = {
    "default": {"mixer": "qmix"},
    "vdn": {"mixer": "vdn"},
    "none": {"mixer": None},
}


def config_of(case):
    """A small config that learns a few times."""
    seen = {"separate_state_space": True, "one_hot_state_encoding": True}
    return {
        "num_workers": 0,
        "seed": 11,
        "framework": "torch",
        "env_config": seen,
        "mixer": CASES[case]["mixer"],
        "mixing_embed_dim": 6,
        "train_batch_size": 16,
        "learning_starts": 40,
        "timesteps_per_iteration": 100,
        "target_network_update_freq": 60,
        "min_time_s_per_reporting": 0,
        "model": {"lstm_cell_size": 8},
    }


def record(policy):
    """What the networks compute of a random sequence, from the first state on."""
    random = np.random.RandomState(1000)
    seen = random.randint(0, 2, (1, STEPS, policy.n_agents, policy.obs_size))
    env_state = random.randint(0, 2, (1, STEPS, *np.ravel(policy.env_global_state_shape)))
    found = {"obs": seen[0], "state": env_state[0]}
    for kind in ("", "target_"):
        model, mixer = getattr(policy, kind + "model"), getattr(policy, kind + "mixer")
        state = [torch.zeros(1, policy.n_agents, s.shape[-1]) for s in model.get_initial_state()]
        values = []
        with torch.no_grad():
            for step in range(STEPS):
                made, state = _mac(model, torch.from_numpy(seen[:, step]).float(), state)
                values.append(made[0].numpy())
            found["out/" + kind + "q_values"] = np.array(values)
            found["out/" + kind + "state_out"] = state[0][0].numpy()
            if mixer is not None:
                taken = torch.from_numpy(np.array(values).max(-1))[None]
                mixed = mixer(taken, torch.from_numpy(env_state).float())
                found["out/" + kind + "mixed"] = mixed[0].numpy()
    return found


def make(name, out):
    def recorded(trainer):
        policy = trainer.get_policy()
        spaces = {
            "observation_space": str(policy.observation_space.original_space),
            "action_space": str(policy.action_space),
        }
        return {"expected": record(policy)}, spaces

    generate.train(
        QMixTrainer,
        config_of(name),
        "museum-game",
        recorded,
        Path(out) / ("qmix-torch-" + name),
        told_by="about.json",
        algo="QMIX",
    )


if __name__ == "__main__":
    generate.run(__doc__, CASES, make, {"museum-game": TwoStepGameWithGroupedAgents})
