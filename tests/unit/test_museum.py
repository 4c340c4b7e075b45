"""The museum is complete: every case has its files, its numbers are numbers, and it stays small."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import rllib_compat
from tests.legacy.cases import MUSEUM, Case, all_cases, find
from tests.legacy.traces import traces

RAYS = (
    "0.5.3", "0.6.6", "0.7.6", "0.8.0", "0.8.5", "0.8.7", "1.0.1", "1.9.2", "1.13.0",
    "2.0.1", "2.1.0", "2.3.1", "2.7.2", "2.8.1", "2.10.0", "2.35.0", "2.40.0",
)  # fmt: skip
EVERY_CASE = pytest.mark.parametrize("case", all_cases(), ids=str)


def test_every_era_is_shown():
    assert {case.ray for case in all_cases()} >= set(RAYS)
    assert {case.framework for case in all_cases()} == {"tf", "tf2", "torch"}
    assert {case.stack for case in all_cases()} == {"old", "learner", "new"}


def test_every_folder_is_a_case():
    folders = {path for path in MUSEUM.glob("[0-9]*/*") if path.is_dir()}
    assert folders == {case.path for case in all_cases()}


def test_the_museum_stays_small():
    files = [path for path in MUSEUM.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    sizes = {path: path.stat().st_size for path in files}
    assert sum(sizes.values()) < 32e6
    assert max(sizes.values()) < 1e6


def test_no_file_says_where_it_was_made():
    demo = Path(rllib_compat.__file__).with_name("demo_data")
    files = {path for root in (MUSEUM, demo) for path in root.rglob("*") if path.is_file()}
    files = {path for path in files if path.suffix not in (".py", ".pyc", ".md", ".txt")}
    found = {str(path): traces(path.read_bytes()) for path in sorted(files)}
    assert not {path: told for path, told in found.items() if told}


def zipped(data):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("data", data)
    return packed.getvalue()


@pytest.mark.parametrize("place", ["/home/jo/train.py", "/root/x.py", "/data2/runs/x", "10.0.3.17"])
@pytest.mark.parametrize(
    "written",
    [
        lambda text: json.dumps({"logdir": text}).encode(),
        *(lambda text, n=n: pickle.dumps([text], protocol=n) for n in range(5)),
        lambda text: pickle.dumps(pickle.dumps(text)) + b"more",
        lambda text: json.dumps({"value": pickle.dumps({"file": text}).hex()}).encode(),
        lambda text: zipped(pickle.dumps(text)),
    ],
)
def test_traces_of_a_machine_are_found_wherever_they_are(written, place):
    assert traces(written(place)) == {place}


@pytest.mark.parametrize("text", ["/tmp/tmpab12/ckpt", "/old/v/gen.py", "127.0.0.1", "fc_1/kernel"])
def test_what_any_machine_has_is_no_trace(text):
    assert not traces(pickle.dumps([text]))


@EVERY_CASE
def test_the_case_stands_where_its_name_says(case: Case):
    assert case.path.parent.name == case.ray
    assert case.path.name.startswith(case.algorithm.lower() + "-" + case.framework)
    assert case.path.name.endswith("-" + case.variant)
    assert case.config


@EVERY_CASE
def test_the_checkpoint_is_there(case: Case):
    # Ray 0.5 wrote only siblings of the name it handed out: checkpoint-2.extra_data, …
    assert any(case.checkpoint.parent.glob(case.checkpoint.name + "*"))
    assert case.about["iteration"] == 2


@EVERY_CASE
def test_the_recorded_numbers_are_finite_and_of_one_batch(case: Case):
    assert set(case.policies) == set(case.about["policies"])
    for policy_id in case.policies:
        expected = case.expected(policy_id)
        assert expected.observations
        for name, array in expected.arrays.items():
            assert array.dtype.kind in "fiu", name
            assert np.isfinite(array).all(), name
        if expected.inputs is not None and expected.logits is not None:
            assert len(expected.inputs) == len(expected.logits) == 16


@pytest.mark.parametrize("case", find(algorithm="PPO"), ids=str)
def test_ppo_has_logits_and_values(case: Case):
    for policy_id in case.policies:
        expected = case.expected(policy_id)
        assert expected.logits is not None
        assert expected.logits.ndim >= 2
        if case.stack != "learner":  # 2.7 and 2.10 did not hand the values out
            assert expected.values is not None
            assert len(expected.values) == len(expected.logits)


def test_expected_of_the_only_policy_needs_no_name():
    (case,) = find(ray="0.8.5", algorithm="PPO", framework="tf", variant="worker1")
    assert case.expected().logits.shape == (16, 2)
    (case,) = find(ray="0.8.5", framework="tf", variant="multiagent")
    with pytest.raises(ValueError, match="too many"):
        case.expected()
