"""The lines below a conversion: what they name is all that the next call needs."""

import types
from dataclasses import replace
from pathlib import Path

import pytest

import rllib_compat as compat
from rllib_compat import Given, registry
from rllib_compat.conversion import Form, describe_next_step, prepare
from rllib_compat.formats import read_checkpoint
from rllib_compat.neutral import Severity
from tests.legacy.cases import all_cases, find, one_of_each
from tests.legacy.networks import given_if_asked
from tests.marks import marked
from tests.support import REFUSED
from tests.trained import environment, spaces_of

CASES = [case for case in all_cases() if str(case) not in REFUSED]
KINDS = one_of_each(
    CASES, lambda c: (c.stack, len(c.policies) > 1, registry.of(c.algorithm).offline)
)


def load(path, *, env=None, given=None, policy_mapping_fn=None, input=None):  # noqa: A002
    """What `compat.load` plans with the same arguments, without building anything."""
    told = {"multiagent": {"policy_mapping_fn": policy_mapping_fn}} if policy_mapping_fn else {}
    told |= {"input": input} if input else {}
    known = (given or Given()).with_arguments(env=env)
    return prepare(read_checkpoint(path), replace(known, overrides=told))


@pytest.mark.parametrize("case", marked(CASES, KINDS), ids=str)
def test_the_lines_give_all_that_the_plan_lacked(case, monkeypatch):
    given = given_if_asked(case)
    plan = prepare(read_checkpoint(case.checkpoint), given)
    text = describe_next_step(plan, Path(case.checkpoint), given)
    head, *lines = text.splitlines()
    assert max(map(len, lines)) < 200
    loaded = []

    def planned(path, **arguments):
        known = replace(given, model=arguments.pop("given", given).model)
        loaded.append(load(path, given=known, **arguments))
        return types.SimpleNamespace(train=lambda: None)

    computed = types.SimpleNamespace(actions=None)
    policy = types.SimpleNamespace(compute_single_action=lambda observation: computed)
    monkeypatch.setattr(compat, "load", planned)
    monkeypatch.setattr(compat, "load_policy", lambda *_, **__: policy)
    scope = {"MyEnv": environment(spaces_of(plan.checkpoint)), "observation": None}
    scope["policy_of"] = lambda *_, **__: ""
    exec("\n".join(line.strip() for line in lines), scope)
    todo = "to continue training" if plan.form is Form.ALGORITHM else "to let it act"
    assert head.startswith(todo)
    lacking = ("environment", "policy-mapping", "offline-data")
    for again in loaded:
        left = [f for f in again.findings if f.severity is not Severity.INFO]
        assert not [f for f in left if f.rule in lacking]


def test_what_is_no_checkpoint_of_today_is_a_command_or_nothing(tmp_path):
    case = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
    done = {
        to: compat.convert(case.checkpoint, tmp_path / to, to=to, algorithm="PPO", inputs=2)
        for to in ("msgpack", "safetensors")
    }
    head, command = done["msgpack"].next_step.splitlines()
    assert (head, done["safetensors"].next_step) == ("to continue training:", "")
    verb, old, new = command.split()[1:]
    assert (verb, Path(old)) == ("convert", tmp_path / "msgpack")
    assert compat.convert(old, new, dry_run=True).trains_on
