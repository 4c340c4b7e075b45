"""What becomes of keys that only the old networks have, where a trainer makes those."""

import pytest

from rllib_compat.config import translate
from rllib_compat.neutral import Verdict

ATTENTION = {"model": {"use_attention": True, "attention_dim": 16}}


def translated(algorithm, config=ATTENTION, **told):
    return translate(config, algorithm=algorithm, env="CartPole-v1", **told)


def verdict(translation, rule):
    return next(row.verdict for row in translation.report if row.rule == rule)


@pytest.mark.parametrize("algorithm", ["PPO", "APPO", "IMPALA", "A2C", "PG", "R2D2"])
def test_an_attention_net_stays_on_the_new_api_stack(algorithm):
    made = translated(algorithm, old_networks=True)
    assert (made.api_stack, made.refused) == ("new", False)
    assert verdict(made, "model.use_attention") is Verdict.KEPT
    assert verdict(made, "model.attention_dim") is Verdict.KEPT


def test_networks_of_today_need_the_old_api_stack_for_attention():
    assert translated("PPO").api_stack == translated("A2C").api_stack == "old"


@pytest.mark.parametrize("algorithm", ["MARWIL", "BC"])
def test_what_learns_from_recordings_has_no_attention_net(algorithm):
    assert translated(algorithm, old_networks=True).refused


def test_a_linear_policy_keeps_its_last_layer():
    config = {"model": {"no_final_linear": True}}
    assert verdict(translated("PPO", config), "model.no_final_linear") is Verdict.DROPPED
    kept = translated("PPO", config, old_networks=True)
    assert verdict(kept, "model.no_final_linear") is Verdict.KEPT
