"""New networks with an LSTM, as trainers save them, are read as what their modules compute.

The truth is the module itself, with the weights that it begins with.
"""

import itertools
from dataclasses import asdict, is_dataclass
from pathlib import Path

import gymnasium
import numpy as np
import pytest

pytest.importorskip("ray")

import torch
import tree

from rllib_compat import Given
from rllib_compat.conversion import prepare
from rllib_compat.neutral import LegacyCheckpoint, PolicyState, Source, spaces
from rllib_compat.ray_versions import configs
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.test_initial_weights import built

pytestmark = OTHERS_WARNINGS

SEEN, ACTIONS, BATCH, STEPS = 4, 3, 2, 5
MODEL = {"use_lstm": True, "lstm_cell_size": 6, "max_seq_len": STEPS, "fcnet_hiddens": [8, 7]}
BACK = {"lstm_use_prev_action": True, "lstm_use_prev_reward": True}
#: The names of states in a module → in a graph.
STATES = {
    **{(name,): name for name in "hc"},
    **{("actor", name): name for name in "hc"},
    **{("critic", name): f"critic_{name}" for name in "hc"},
    **{(part, name): f"{part}_{name}" for part in ("pi", "q", "twin_q") for name in "hc"},
}


def spaces_of(model):
    size = SEEN + (ACTIONS + 1 if "lstm_use_prev_action" in model else 0)
    seen = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
    return seen, gymnasium.spaces.Discrete(ACTIONS)


def read(algorithm, module):
    """The network that a checkpoint of a module is read as, and the policy with its spaces."""
    seen, acts = module.observation_space, module.action_space
    told = module.model_config
    told = asdict(told) if is_dataclass(told) else dict(told)
    cls = type(module)
    own = cls.__module__.startswith("rllib_compat.")
    policy = PolicyState(
        "p",
        {name: np.asarray(array) for name, array in module.get_state().items()},
        observation_space=spaces.from_object(seen),
        action_space=spaces.from_object(acts),
        config={"model": {} if own else told},
        policy_class=f"{cls.__module__}.{cls.__qualname__}",
        is_module=True,
        extra={"module_config": told} if own else {},
    )
    checkpoint = LegacyCheckpoint(
        Source(Path("here"), "2.1"), algorithm, {}, policies={"p": policy}
    )
    plan = prepare(checkpoint, Given(), to="msgpack")
    return plan.networks["p"], plan.checkpoint.policies["p"]


def computed(algorithm, module, batch):
    """What the module computes: logits or values, and states."""
    if algorithm == "R2D2":
        out = module.compute_q_values(batch)
        return {"q_values": out["qf_preds"], "state_out": out["state_out"]}
    return module.critics(batch) if algorithm == "RNNSAC" else module.forward_train(batch)


KINDS = [("PPO", False), *((name, True) for name in ("PPO", "A2C", "IMPALA", "R2D2", "RNNSAC"))]
CASES = list(itertools.product(KINDS, ({}, BACK), (None, "tanh", "relu", "linear")))
#: The default activation with each, and each activation with one.
ON_EACH_PUSH = [case for case in CASES if case[2] is None or case[:2] == (("PPO", True), {})]


@pytest.mark.parametrize(
    ("kind", "back", "activation"),
    [
        pytest.param(*case, marks=() if case in ON_EACH_PUSH else pytest.mark.nightly)
        for case in CASES
    ],
)
def test_a_new_network_is_read_as_what_it_computes(kind, back, activation):
    algorithm, shares = kind
    model = {**MODEL, **back, "vf_share_layers": shares}
    if activation is not None:
        model["fcnet_activation"] = activation
    module = built(algorithm, spaces_of(model), **model).unwrapped()
    network, policy = read(algorithm, module)
    assert policy.observation_space.shape == (SEEN,)
    random = np.random.default_rng(5)
    obs = random.normal(size=(BATCH, STEPS, SEEN)).astype(np.float32)
    actions = random.integers(ACTIONS, size=(BATCH, STEPS))
    rewards = random.normal(size=(BATCH, STEPS, 1)).astype(np.float32)
    states = tree.map_structure(
        lambda state: random.normal(size=(BATCH, *state.shape)).astype(np.float32),
        module.get_initial_state(),
    )
    whole = np.concatenate([obs, np.eye(ACTIONS)[actions], rewards], -1) if back else obs
    inputs = {"obs": obs, **of_graph(states)}
    if back:
        inputs |= {"prev_actions": actions[..., None], "prev_rewards": rewards}
    batch = tree.map_structure(
        lambda array: torch.from_numpy(array.astype(np.float32)),
        {"obs": whole, "state_in": states},
    )
    with torch.no_grad():
        theirs = computed(algorithm, module, batch)
    ours = network.forward(inputs)
    for name in ("action_dist_inputs", "q_values"):
        if name in theirs:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-4, atol=1e-5)
    for name, state in of_graph(theirs["state_out"]).items():
        np.testing.assert_allclose(ours[name], state, rtol=1e-4, atol=1e-5)


def of_graph(states):
    """A module's states by their names in a graph; Ray's have an axis for layers."""
    found = tree.flatten_with_path(states)
    return {STATES[path]: np.reshape(np.asarray(s), (BATCH, -1)) for path, s in found}


def test_rays_own_module_is_read_without_the_step_before_that_its_config_asks_for():
    """Its settings of these names do nothing: nothing stands behind its observations."""
    config = configs.todays_config("PPO").rl_module(model_config={**MODEL, **BACK})
    learner = config.build_learner(spaces={"default_policy": spaces_of({})})
    network, policy = read("PPO", learner.module["default_policy"].unwrapped())
    assert not any(name.startswith("prev_") for name in network.graph.inputs)
    assert policy.observation_space.shape == (SEEN,)
