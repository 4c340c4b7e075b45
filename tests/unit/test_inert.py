"""Text in a checkpoint's config that names code: nothing of it is ever imported."""

import json
import shutil
import sys

import pytest

from rllib_compat.convert import complete as resolve
from rllib_compat.convert.config import config_for_target
from rllib_compat.convert.given import Given
from rllib_compat.convert.inert import without_code
from rllib_compat.convert.inspect import inspect
from rllib_compat.convert.pipeline import convert
from rllib_compat.formats import layouts
from rllib_compat.neutral.records import is_stand_in
from rllib_compat.neutral.space_text import parse_repr
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
    found = inspect(old, SPACES)
    assert any(f.rule == "code-as-text" for f in found.report)
    checkpoint = layouts.read(old)
    checkpoint = resolve.complete(checkpoint, SPACES)
    assert config_for_target(checkpoint)[0].report


@pytest.mark.parametrize("config", HOSTILE, ids=str)
def test_a_dry_run_and_msgpack_do_not_import_it_either(trap, tmp_path, config):
    old = trap(**config)
    convert(old, tmp_path / "new", given=SPACES, dry_run=True)
    convert(old, tmp_path / "new", given=SPACES, to="msgpack", inputs=5)
    inspect(tmp_path / "new", SPACES)


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")  # Ray's and gymnasium's, about their own old parts
def test_a_conversion_into_the_installed_ray_imports_none_of_it(trap, tmp_path):
    from ray.rllib.algorithms.algorithm import Algorithm

    everything = {}
    for config in HOSTILE:
        everything |= config
    everything["env"] = "evilmod:Env-v0"
    convert(trap(**everything), tmp_path / "new", given=SPACES, inputs=5)
    algorithm = Algorithm.from_checkpoint(str(tmp_path / "new"))
    algorithm.stop()


@pytest.mark.parametrize(
    "text",
    [
        "relu",
        "CartPole-v1",
        "/tmp/out/data.json",
        "s3://bucket/x.json",
        "a/b.c",
        "0.5",
        "",
        "a b.c",
    ],
)
def test_other_text_is_left_as_it_is(text):
    assert without_code({"key": text}, "$") == ({"key": text}, [])


@pytest.mark.parametrize("name", ["CartPole-v1", "ALE/Pong-v5", "my_env", "Cars And Lights"])
def test_names_of_environments_are_left_as_they_are(name):
    assert without_code({"env": name}, "$") == ({"env": name}, [])


def test_what_the_caller_gives_is_trusted():
    checkpoint = layouts.read(WORKER1.checkpoint)
    checkpoint = resolve.complete(checkpoint, Given(env="my.module:Env"))
    assert checkpoint.config["env"] == "my.module:Env"


def test_a_config_that_is_given_as_a_file_is_not_trusted():
    checkpoint = layouts.read(WORKER1.checkpoint)
    checkpoint = resolve.complete(checkpoint, Given("PPO", {"callbacks": "evilmod.Callbacks"}))
    assert is_stand_in(checkpoint.config["callbacks"])
