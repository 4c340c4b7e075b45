"""Whatever a stranger's checkpoint says: nothing runs, is imported, or is written elsewhere.

One test a door. The doors that need Ray are in `tests/integration/`.
"""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from rllib_compat import convert, inspect, verify
from rllib_compat.conversion import find_jobs
from rllib_compat.errors import CompatError
from rllib_compat.formats import list_globals, load_pickle, load_torch, read_checkpoint
from tests.security import payloads
from tests.security.canary import watched


@pytest.fixture
def places(tmp_path):
    """A folder for the file, one for what a door may write, and one for code that must not run."""
    return tmp_path / "old", tmp_path / "new", tmp_path / "code"


def all_doors(path: Path, new: Path) -> int:
    """Sends a file through inspect, convert and verify; tells how many took it."""
    new.mkdir(exist_ok=True)
    taken = 0
    for door in (
        lambda: inspect(path).to_dict(),
        lambda: convert(path, new / "msgpack", to="msgpack", inputs=2),
        lambda: convert(path, new / "other", to="msgpack", prove=False),
        lambda: verify(path, new / "msgpack", inputs=2),
    ):
        try:
            door()
            taken += 1
        except CompatError:
            continue
    return taken


CALLS = [(name, place) for name, (_, places) in payloads.LAYOUTS.items() for place in places]


@pytest.mark.parametrize(("layout", "place"), CALLS, ids=lambda value: value.replace(" ", "-"))
def test_a_call_in_a_pickle_does_not_run(layout, place, places):
    old, new, code = places
    path = payloads.LAYOUTS[layout][0](old, call=place)
    with watched(code, new) as seen:
        all_doors(path, new)
    seen.assert_clean()


def test_the_calls_are_live(places):
    old, new, code = places
    path = payloads.v0_1(old, call="outer")
    with watched(code, new) as seen:
        pickle.loads(path.read_bytes())
    assert seen.imported
    assert seen.executed
    with pytest.raises(AssertionError):
        seen.assert_clean()


@pytest.mark.parametrize("layout", payloads.LAYOUTS)
@pytest.mark.parametrize("key", payloads.KEYS)
def test_a_text_that_names_code_is_text(layout, key, places, tmp_path):
    old, new, code = places
    for number, text in enumerate(payloads.TEXTS.values()):
        for params in ({key: text}, {"evaluation_config": {key: text}}, {key: {"type": text}}):
            made = payloads.LAYOUTS[layout][0](old / f"{number}{len(str(params))}", params=params)
            with watched(code, new) as seen:
                try:
                    inspect(made)
                    convert(made, new / "x", to="msgpack", inputs=2, overwrite=True)
                except CompatError:
                    pass
            seen.assert_clean()
        if key not in ("callbacks", "env"):
            break


#: What ends a reading before anything else is looked at, when it is not what it should be.
MASKS = {"model", "multiagent", "evaluation_config", "env"}


@pytest.mark.parametrize("layout", payloads.LAYOUTS)
@pytest.mark.parametrize("text", payloads.TEXTS)
def test_every_text_under_all_keys_at_once_is_text(layout, text, places):
    """The whole dozen under each key, also where configs stand inside of configs."""
    old, new, code = places
    value = payloads.TEXTS[text]
    for form in (value, {"type": value}, [value]):
        config = {key: form for key in payloads.KEYS if key not in MASKS}
        config |= {"env_config": dict(config), "model": {"custom_model": form}}
        config |= {"evaluation_config": dict(config)}
        config |= {"multiagent": {"policies": {"default_policy": [form, form, form, dict(config)]}}}
        made = payloads.LAYOUTS[layout][0](old / str(len(str(form))), params=config)
        with watched(code, new) as seen:
            list_globals(made)
            all_doors(made, new)
        seen.assert_clean()


@pytest.mark.parametrize("layout", payloads.LAYOUTS)
def test_a_folder_of_checkpoints_runs_nothing_and_writes_only_below_its_target(layout, places):
    old, new, code = places
    for place in payloads.LAYOUTS[layout][1]:
        payloads.LAYOUTS[layout][0](old / place.replace(" ", "-"), call=place)
    (old / "link").symlink_to(old.parent)
    new.mkdir()
    with watched(code, new) as seen:
        jobs = find_jobs(old, new)
        for job in jobs:
            with suppress(CompatError):
                convert(job.old, job.new, to="msgpack", inputs=2)
    seen.assert_clean()
    assert len(jobs) == len(payloads.LAYOUTS[layout][1])


@pytest.mark.parametrize("layout", payloads.LAYOUTS)
def test_an_id_that_is_a_path_leads_nowhere(layout, places):
    old, new, code = places
    path = payloads.LAYOUTS[layout][0](old, ids=payloads.IDS)
    with watched(code, new) as seen:
        all_doors(path, new)
    seen.assert_clean()
    assert {p.name for p in old.parent.iterdir()} <= {"old", "new", "code"}


@pytest.mark.parametrize("form", [payloads.torch_zip, payloads.torch_tar_style])
def test_a_file_of_torch_is_data(form, places):
    _, new, code = places
    new.mkdir()
    with watched(code, new) as seen:
        load_torch(form(payloads.dumps({"w": payloads.Call()})))
        inner = payloads.long_bytes(form(payloads.dumps(payloads.Call())))
        load_pickle(b"ctorch.storage\n_load_from_bytes\n" + inner + b"\x85R.")
    seen.assert_clean()


def test_a_folder_of_one_layout_that_holds_files_of_another_is_told(places):
    old, new, code = places
    payloads.v1(old)
    tree = payloads.v2(old / "tree", call="outer")
    (tree / "learner_group").rename(old / "learner_group")
    (tree / "class_and_ctor_args.pkl").rename(old / "class_and_ctor_args.pkl")
    with watched(code, new) as seen:
        with pytest.raises(CompatError, match=r"2\.x"):
            read_checkpoint(old)
        all_doors(old, new)
    seen.assert_clean()


def test_reading_needs_neither_ray_nor_torch(places):
    import subprocess

    old, *_ = places
    path = payloads.v0_1(old)
    code = f"""
import sys
from rllib_compat.conversion import find_jobs
from rllib_compat import inspect
inspect({str(path)!r})
assert not {{"ray", "torch", "tensorflow", "gym"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
