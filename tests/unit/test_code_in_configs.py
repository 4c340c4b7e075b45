"""Text in a checkpoint's config that names code: nothing of it is ever imported."""

import json
import shutil
import sys
from dataclasses import replace

import pytest

from rllib_compat import Given, convert, inspect
from rllib_compat.conversion import prepare
from rllib_compat.formats import read_checkpoint
from rllib_compat.neutral import GlobalRef, Severity, StandIn
from rllib_compat.neutral.spaces import parse_repr
from tests.legacy.cases import find

WORKER1 = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
SPACES = Given(
    "PPO",
    observation_spaces={None: parse_repr("Box(4,)")},
    action_spaces={None: parse_repr("Discrete(2)")},
)


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """Modules that leave a mark when they are imported, and a checkpoint beside them."""
    mark = tmp_path / "executed"
    for name in ("evilmod", "evil-mod", "1evil"):
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    old = shutil.copytree(WORKER1.path, tmp_path / "old")
    (old / "params.pkl").unlink()

    def with_config(**config):
        params = json.loads((WORKER1.path / "params.json").read_text()) | config
        (old / "params.json").write_text(json.dumps(params))
        return old

    yield with_config
    assert not mark.exists()
    assert "evilmod" not in sys.modules


HOSTILE = [
    {"env": "evilmod:Env-v0"},
    {"env": "evil-mod:Env-v0"},
    {"env": "1evil:Env-v0"},
    {"env": "evilmod.Env"},
    {"env": "evil-mod.Env"},
    {"callbacks": "evilmod.Callbacks"},
    {"callbacks": {"on_episode_end": "evilmod.end"}},
    {"exploration_config": {"type": "evilmod.Exploration"}},
    {"sample_collector": "evilmod.Collector"},
    {"custom_eval_function": "evilmod.evaluate"},
    {"evaluation_config": {"env": "evilmod:Env-v0", "callbacks": "evilmod.Callbacks"}},
    {"evaluation_interval": 1, "evaluation_config": {"env": "evilmod.Env"}},
    {"input": "evilmod.reader"},
    {"output": "evilmod.writer"},
    {"replay_buffer_config": {"type": "evilmod.Buffer"}},
    {"optimizer": {"class": "evilmod.Optimizer"}},
    {"extra_python_environs_for_driver": {"PYTHONSTARTUP": "evil.py"}},
]


@pytest.mark.parametrize("config", HOSTILE, ids=str)
def test_text_that_names_code_is_not_imported_by_inspect_or_by_translating(trap, config):
    old = trap(**config)
    inspect(old, given=SPACES)
    plan = prepare(read_checkpoint(old), SPACES)
    told = [*plan.checkpoint.findings, *plan.findings, *plan.translation.report]
    for key in config:
        assert any(key in f.path for f in told), key


@pytest.mark.parametrize("config", HOSTILE, ids=str)
def test_a_dry_run_and_msgpack_do_not_import_it_either(trap, tmp_path, config):
    old = trap(**config)
    convert(old, tmp_path / "new", given=SPACES, dry_run=True)
    convert(old, tmp_path / "new", given=SPACES, to="msgpack", inputs=5)
    inspect(tmp_path / "new", given=SPACES)


def test_a_name_of_code_passes_only_if_the_caller_trusts_exactly_that(trap, tmp_path):
    old = trap(callbacks="mymod.Callbacks", sample_collector="evilmod.Collector")
    for trust in ((), ("mymod:Other",), ("mymod:Callbacks",)):
        translation = prepare(read_checkpoint(old), replace(SPACES, trust=trust)).translation
        trusted = trust == ("mymod:Callbacks",)
        assert ("mymod:Callbacks" in str(translation.report.facts.get("trusted"))) == trusted
        assert (translation.legacy_callbacks is not None) == trusted


def test_the_report_tells_how_to_trust_a_name_and_which_were_trusted(trap, tmp_path):
    old = trap(callbacks="evilmod.Callbacks", env="evilmod:Env-v0", input="evilmod.reader x")
    how = {"given": SPACES, "dry_run": True}
    report = convert(old, tmp_path / "new", **how).report
    (row,) = [f for f in report if f.path == "$.callbacks"]
    assert row.hint.endswith("--trust evilmod:Callbacks")
    assert not any("--trust" in f.hint for f in report if f.path == "$.input")
    assert "trusted" not in report.facts
    how["given"] = replace(SPACES, trust=("evilmod:Callbacks", "evilmod:Another"))
    report = convert(old, tmp_path / "new", **how).report
    assert report.facts["trusted"] == "evilmod:Callbacks ($.callbacks)"


def test_what_the_caller_gives_is_trusted():
    checkpoint = read_checkpoint(WORKER1.checkpoint)
    checkpoint = prepare(checkpoint, Given(env="my.module:Env"), to="msgpack").checkpoint
    assert checkpoint.config["env"] == "my.module:Env"


def test_a_config_that_is_given_as_a_file_is_not_trusted(trap):
    given = replace(SPACES, config={"callbacks": "evilmod.Callbacks"})
    translation = prepare(read_checkpoint(trap()), given).translation
    assert translation.legacy_callbacks is None
    assert any("Callbacks" in f.message for f in translation.report)


@pytest.mark.parametrize(
    ("named", "is_ours"),
    [("rllib_compat.runtime.x", True), ("ray.rllib.x", True), ("mine", False), ("numpy", False)],
)
def test_a_class_of_this_package_is_made_anew_unless_it_holds_somebody_elses(named, is_ours):
    made = {"__module__": "rllib_compat.runtime.callbacks"}
    maker = GlobalRef("ray.cloudpickle.cloudpickle", "_make_skeleton_class")
    kept = StandIn(GlobalRef(named, "Thing"))
    cls = (type, "LegacyCallbacks", (), made, "1", None)
    value = StandIn(maker, cls, state=({"a": [kept]}, {}))
    checkpoint = read_checkpoint(WORKER1.checkpoint)
    checkpoint = replace(checkpoint, config={**checkpoint.config, "callbacks": value})
    report = prepare(checkpoint, SPACES).translation.report
    (row,) = [row for row in report if row.path == "$.callbacks"]
    assert (row.severity is Severity.INFO) is is_ours
    assert ("pass it again" in row.hint) is not is_ours
