"""`Policy.from_checkpoint` in code of Ray 2.1 – 2.9: policies without an environment."""

import textwrap

import pytest

from tests.legacy.cases import find
from tests.processes import start

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

AGENTS = next(c for c in find(ray="2.3.1") if c.variant == "ma-tuples")
FILTERED = next(c for c in find(ray="2.3.1") if c.variant == "meanstd24x16")
PLACES = (AGENTS.checkpoint, FILTERED.checkpoint)
SCRIPT = textwrap.dedent(
    """
    import numpy as np
    import sys
    import rllib_compat
    from ray.rllib.policy.policy import Policy
    from ray.rllib.policy import Policy as Same

    agents, filtered = sys.argv[1:]
    policies = Policy.from_checkpoint(agents)
    print(sorted(policies), isinstance(policies["pol_a"], Policy), Same is Policy)
    print(list(Policy.from_checkpoint(agents, policy_ids=["pol_b"])))
    for policy_id, policy in policies.items():
        seen = np.full(policy.observation_space.shape, 0.3, np.float32)
        known = rllib_compat.load_policy(agents, policy_id=policy_id)
        expected = known.compute_single_action(seen, explore=False)[2]["action_dist_inputs"]
        found = policy.compute_single_action(seen, explore=False)[2]["action_dist_inputs"]
        print(policy_id, np.allclose(expected, found, atol=1e-5))
    alone = Policy.from_checkpoint(f"{filtered}/policies/default_policy")
    print(alone.policy_id, alone.action_space, sorted(alone.get_weights())[:1])
    try:
        Policy.from_state(alone.get_state())
    except AttributeError as error:
        print("Policy.from_checkpoint(path)" in str(error))
    """
)


def test_policies_are_made_of_checkpoints(tmp_path):
    script = tmp_path / "serve.py"
    script.write_text(SCRIPT)
    done = start(tmp_path, "run", script, *PLACES)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        "['pol_a', 'pol_b'] True True",
        "['pol_b']",
        "pol_a True",
        "pol_b True",
        "default_policy Discrete(3) ['encoder.actor_encoder.net.mlp.0.bias']",
        "True",
    ]
