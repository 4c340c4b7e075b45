"""Old policies act as they did: raw observations in, the recorded outputs and actions out."""

from collections.abc import Mapping

import numpy as np
import pytest

from tests.legacy.acting import outputs, policies, seen
from tests.legacy.cases import all_cases
from tests.support import REFUSED

#: What old Rays recorded is float32; convolutions and sequences add up more of its errors.
TOLERANCE, DEEP_TOLERANCE = 1e-5, 1e-4

#: MADDPG's actions were drawn whatever was asked, and are not without Ray.
CASES = [c for c in all_cases() if str(c) not in REFUSED and c.algorithm != "MADDPG"]

#: The first Ray whose recorded actions are the best ones; before, they were sampled, except those
#: of SAC, which had a switch, and of policies that have only one.
FIRST_GREEDY = (0, 8, 0)
#: ES drew its actions even when it did not explore.
ALWAYS_SAMPLED = ("1.0.1/es-torch-default", "1.13.0/es-torch-meanstd")
#: Where `compute_action` gave what the policy gave, though the environment got it stretched: by a
#: wrapper of the environment up to Ray 1.3, by the sampler in 1.9.
NOT_STRETCHED = ("1.0.1/sac-tf-cont", "1.9.2/ppo-torch-freelogstd")
#: Ray 0.5 did not store the filter, so there is only what came out of it.
NO_FILTER = ("0.5.3/ars-tf-small",)


def parts(actions):
    """The arrays of a structure of actions."""
    if isinstance(actions, Mapping):
        return [part for key in sorted(actions) for part in parts(actions[key])]
    if isinstance(actions, tuple):
        return [found for part in actions for found in parts(part)]
    return [actions]


def recorded(arrays, name):
    """The parts of what was recorded under a name; what a noisy network did without its noise."""
    quiet = f"noisefree/{name}"
    name = quiet if quiet in arrays else name
    return [arrays[key] for key in sorted(arrays) if key == name or key.startswith(f"{name}/")]


def same(mine, theirs, tolerance, what):
    assert len(mine) == len(theirs), what
    for ours, old in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(
            np.asarray(ours).reshape(old.shape), old, atol=tolerance, rtol=1e-5, err_msg=what
        )


def decided(arrays, tolerance):
    """The rows where a Q-network prefers an action; between equals, rounding decides."""
    q_values = recorded(arrays, "out/q_values")
    if not q_values:
        return slice(None)
    *_, second, best = np.sort(q_values[0]).T
    return best - second > tolerance


def adds_up_much(graph):
    """Whether so many numbers are added up that float32 shows it."""
    return graph.recurrent or any(step.op == "conv" for step in graph.steps)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_policy_acts_as_it_did_on_its_own_ray(case):
    compared = 0
    for policy_id, policy in policies(case).items():
        old = seen(case, policy_id, policy)
        tolerance = DEEP_TOLERANCE if adds_up_much(policy.network.graph) else TOLERANCE
        observations = old.arrays["obs_in"] if str(case) in NO_FILTER else old.observations
        new = policy.compute_actions(observations, old.state, *old.previous)
        for name, theirs in outputs(old).items():
            if name in new.extras and name != "actions":
                same([new.extras[name]], [theirs], tolerance, name)
                compared += 1
        only = "actions" in policy.network.graph.outputs or case.algorithm == "SAC"
        greedy = (case.version >= FIRST_GREEDY or only) and str(case) not in ALWAYS_SAMPLED
        theirs = recorded(old.arrays, "action") or recorded(old.arrays, "out/actions")
        if greedy and theirs:
            rows = decided(old.arrays, tolerance)
            mine = parts(new.extras["policy_actions"])
            same([a[rows] for a in mine], [a[rows] for a in theirs], tolerance, "action")
            compared += 1
        # A noisy network's were recorded with the noise of that moment.
        noisy = "noisefree/action" in old.arrays
        if not noisy and (theirs := recorded(old.arrays, "env_action")):
            kept = str(case) in NOT_STRETCHED
            same(
                parts(new.extras["policy_actions"] if kept else new.actions),
                theirs,
                2 * tolerance,
                "env_action",
            )
            compared += 1
        if old.state is not None:
            states = recorded_states(old.arrays, len(new.state))
            same([s[:, -1] if s.ndim == 3 else s for s in new.state], states, tolerance, "state")
            compared += 1
    assert compared


def recorded_states(arrays, count):
    """The states after the step; of attention nets only what the last step added."""
    names = sorted(name for name in arrays if name.startswith("state_out"))
    if any("/" in name for name in names):
        names = [f"state_out/{part}" for part in ("actor/h", "actor/c", "critic/h", "critic/c")]
    return [arrays[name].reshape(len(arrays[name]), -1) for name in names[:count]]
