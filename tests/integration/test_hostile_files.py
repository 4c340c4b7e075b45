"""The doors that need Ray: whatever a stranger's file says, none of its code is imported or run."""

import json
import shutil
import sys

import pytest

import rllib_compat as compat
from rllib_compat import Given, convert, verify
from rllib_compat.errors import CompatError
from tests.legacy.cases import find
from tests.marks import TRAINERS
from tests.security import payloads
from tests.security.canary import MODULE
from tests.unit.test_code_in_configs import HOSTILE, SPACES, trap  # noqa: F401

pytestmark = [*TRAINERS, pytest.mark.newest, pytest.mark.usefixtures("one_ray")]

OLD = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
GIVEN = Given("PPO", env="CartPole-v1")
MODEL = {"fcnet_hiddens": [32, 32], "fcnet_activation": "relu"}


@pytest.fixture
def code(tmp_path, monkeypatch):
    """The stranger's module on the path; it leaves marks where it is imported."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / f"{MODULE}.py").write_text(f"open({str(folder / 'imported')!r}, 'w').close()")
    monkeypatch.syspath_prepend(folder)
    yield folder
    assert not (folder / "imported").exists()
    assert MODULE not in sys.modules


def test_texts_that_name_code_reach_no_import_through_restore_and_load(code, make, tmp_path):
    texts, keys = list(payloads.TEXTS.values()), [k for k in payloads.KEYS if k != "model"]
    params = json.loads((OLD.path / "params.json").read_text())
    trainer = make(config={**params, "num_workers": 0, "env": "CartPole-v1"})
    for turn in range(2):
        hostile = {key: texts[(i + turn) % len(texts)] for i, key in enumerate(keys)}
        old = shutil.copytree(OLD.path, tmp_path / f"old{turn}")
        (old / "params.pkl").unlink()
        told = {**params, **hostile, "evaluation_config": hostile}
        (old / "params.json").write_text(json.dumps(told))
        file = next(p for p in old.rglob(OLD.checkpoint.name) if p.is_file())
        trainer.restore(file)
        assert trainer.iteration == 2
        algorithm = compat.load(file, env="CartPole-v1", num_workers=0, given=GIVEN)
        algorithm.stop()
        convert(file, tmp_path / f"new{turn}", inputs=5, given=GIVEN)
        assert verify(file, tmp_path / f"new{turn}", inputs=5, given=GIVEN).equal


def test_texts_that_name_code_are_not_imported_by_a_converted_checkpoint(trap, load, tmp_path):  # noqa: F811
    everything = {key: value for config in HOSTILE for key, value in config.items()}
    everything["env"] = "evilmod:Env-v0"
    convert(trap(**everything), tmp_path / "new", given=SPACES, inputs=5)
    load(tmp_path / "new")


@pytest.mark.parametrize("layout", payloads.LAYOUTS)
def test_calls_in_pickles_run_through_no_door(layout, code, make, tmp_path):
    build, places = payloads.LAYOUTS[layout]
    trainer = make(config={"env": "CartPole-v1", "num_workers": 0, "model": MODEL})
    for place in places:
        path = build(tmp_path / place.replace(" ", "-"), call=place)
        folder = path if path.is_dir() else path.parent
        for door in (
            lambda path=path: trainer.restore(path),
            lambda folder=folder: trainer.restore(folder),
            lambda path=path: compat.load(path, env="CartPole-v1").stop(),
            lambda path=path, place=place: convert(path, tmp_path / "new" / place, inputs=2),
            lambda folder=folder: verify(OLD.checkpoint, folder, inputs=2),
        ):
            try:
                door()
            except CompatError:
                continue
