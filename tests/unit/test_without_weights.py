"""Policies that have no weights: a heuristic, or random actions, beside one that learned."""

from dataclasses import replace

import pytest

from rllib_compat import Given, convert
from rllib_compat.conversion import prepare
from rllib_compat.errors import CheckpointError, NotConvertibleError
from rllib_compat.formats import read_checkpoint
from rllib_compat.neutral import Severity, Verdict
from tests.legacy.cases import MUSEUM, find

HEURISTIC = MUSEUM / "trials/1.13.0-ppo-heuristic/checkpoint_000002"
RANDOM = MUSEUM / "trials/1.13.0-ppo-random/checkpoint_000002"
LEAGUE = next(c for c in find(ray="1.13.0", framework="torch") if "league" in c.variant)


def rows_about(report, path):
    return [f for f in report if f.path.startswith(path)]


def test_the_policies_beside_a_heuristic_are_converted_and_its_row_says_what_to_do():
    done = convert(HEURISTIC, "unused", dry_run=True)
    assert list(done.checkpoint.policies) == list(done.networks) == ["learned"]
    (row,) = rows_about(done.report, "policies.other")
    assert (row.severity, row.verdict) == (Severity.WARNING, Verdict.DROPPED)
    assert "Heuristic" in row.message
    assert "add_module('other'" in row.hint


def test_msgpack_keeps_a_policy_without_weights(tmp_path):
    done = convert(HEURISTIC, tmp_path / "new", to="msgpack", inputs=10)
    assert done.differences
    assert set(read_checkpoint(tmp_path / "new").policies) == {"learned", "other"}


def test_only_rays_own_random_policy_becomes_the_random_module():
    done = convert(RANDOM, "unused", dry_run=True)
    assert done.checkpoint.algorithm == "PPO"  # not Random, which RLlib had, too
    assert set(done.checkpoint.policies) == {"learned", "other"}


def test_a_policy_that_acts_at_random_is_not_trained():
    done = convert(RANDOM, "unused", dry_run=True)
    assert done.translation is not None
    assert done.translation.calls["multi_agent"]["policies_to_train"] == ["learned"]


def test_a_checkpoint_whose_policies_all_were_code_is_refused():
    with pytest.raises(NotConvertibleError, match="No policy has weights"):
        convert(HEURISTIC, "unused", dry_run=True, given=Given(policies=("other",)))


def test_one_network_that_is_not_known_does_not_hold_back_the_others():
    league = read_checkpoint(LEAGUE.checkpoint)
    first, *others = league.policies.values()
    weights = {**first.weights, "my_own.layer": next(iter(first.weights.values()))}
    league = league.with_policies([replace(first, weights=weights), *others])
    with pytest.raises(CheckpointError, match=f'policies=."{others[0].policy_id}"') as caught:
        prepare(league, Given())
    assert f"--policy {first.policy_id}" not in str(caught.value)
    wanted = tuple(policy.policy_id for policy in others)
    assert set(prepare(league, Given(policies=wanted)).networks) == set(wanted)
