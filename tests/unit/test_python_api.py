"""Checkpoints from Python: `convert`, `inspect` and `verify`, and what they return."""

import json
import shutil
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

import rllib_compat as compat
from rllib_compat.errors import CheckpointError, ConfigError, MissingInformationError
from rllib_compat.formats import read_checkpoint
from rllib_compat.neutral.spaces import Box, Discrete
from tests.legacy.cases import find

CASE = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
BARE = next(c for c in find(ray="0.8.5") if c.variant == "fc32relu-share")


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    new = tmp_path_factory.mktemp("converted") / "new"
    return compat.convert(CASE.path, new, algorithm="PPO", to="msgpack", inputs=20)


def test_they_are_functions_whatever_was_imported_before():
    for module in ("convert", "inspect", "plan"):
        import_module(f"rllib_compat.conversion.{module}")
    assert all(callable(f) for f in (compat.convert, compat.inspect, compat.verify))
    assert {"convert", "inspect", "verify", "Conversion", "Inspection", "Verification"} <= set(
        compat.__all__
    )


def test_looking_imports_neither_ray_nor_torch_and_importing_the_package_not_even_numpy():
    code = (
        "import sys, rllib_compat as compat\n"
        "assert not {'numpy', 'ray', 'torch'} & sys.modules.keys()\n"
        f"compat.inspect({str(CASE.path)!r}, algorithm='PPO').to_dict()\n"
        "assert not {'ray', 'torch', 'tensorflow'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_inspection_is_records():
    found = compat.inspect(CASE.path, algorithm="PPO")
    assert (found.layout, found.ray_version, found.algorithm) == ("0.1", "0.8.5", "PPO")
    assert (found.environment, found.counters.iteration) == ("CartPole-v0", 2)
    policy = found.policies["default_policy"]
    assert (policy.parameters, policy.has_optimizer_state) == (2531, False)
    assert isinstance(policy.observation_space, Box)
    assert policy.action_space == Discrete(2)
    assert policy.observation_filter.stats[0].count == 419
    assert "fc 4-32-32-2 relu" in policy.network
    assert sum(int(np.prod(array.shape)) for array in found.arrays) == 2531
    assert {array.dtype for array in found.arrays} == {"float32"}
    assert {"activation", "head"} <= {row.what for row in found.assumptions}


def test_what_is_not_known_is_none_and_no_error():
    found = compat.inspect(BARE.checkpoint)
    assert found.environment is None
    assert found.policies["default_policy"].action_space is None


def test_a_conversion_is_records(converted):
    assert not converted.trains_on
    assert converted.target.is_dir()
    assert converted.largest_difference == 0
    rows = {(row.output, row.kind): row for row in converted.differences}
    assert rows["weights", "stored"].inputs == 2531
    assert rows["vf_preds", "random"].inputs == 20
    assert all(row.ok for row in converted.differences)
    assert any(row.what == "activation" and not row.proven for row in converted.assumptions)
    assert converted.checkpoint.algorithm == converted.report.facts["algorithm"] == "PPO"


def test_a_verification_tells_and_does_not_raise(converted, tmp_path):
    same = compat.verify(CASE.path, converted.target, algorithm="PPO", inputs=20)
    assert same.equal
    old = shutil.copytree(CASE.path, tmp_path / "old")
    file = old / "checkpoint_2" / "checkpoint-2"
    (policy,) = read_checkpoint(old).policies.values()
    kernel = np.array(policy.weights["default_policy/fc_out/kernel"])
    file.write_bytes(file.read_bytes().replace(kernel.tobytes(), (kernel + 1).tobytes()))
    other = compat.verify(old, converted.target, algorithm="PPO", inputs=20)
    assert not other.equal
    assert {row.output for row in other.differences if not row.ok} == {
        "weights",
        "action_dist_inputs",
    }


def test_results_are_plain_data_for_json(converted):
    same = compat.verify(CASE.path, converted.target, algorithm="PPO", inputs=20)
    found = compat.inspect(CASE.path, algorithm="PPO")
    for result in (converted, same, found):
        assert json.loads(json.dumps(result.to_dict())) == result.to_dict()


def test_recordings_and_observations_may_be_files_or_arrays(converted, tmp_path):
    file = CASE.path / "expected.npz"
    with np.load(file) as arrays:
        recorded = dict(arrays)
    observations = {"default_policy": CASE.expected().inputs}
    np.savez(tmp_path / "seen.npz", **observations)
    known = {"algorithm": "PPO", "inputs": 5}
    one = compat.verify(
        CASE.path,
        converted.target,
        recorded=file,
        observations=str(tmp_path / "seen.npz"),
        **known,
    )
    other = compat.verify(
        CASE.path, converted.target, recorded=recorded, observations=observations, **known
    )
    assert one == other
    assert {row.kind for row in one.differences} == {"stored", "random", "given", "recorded"}
    with pytest.raises(CheckpointError, match="No such file"):
        compat.verify(CASE.path, converted.target, recorded=tmp_path / "nothing.npz")


def test_arguments_go_before_what_is_given(tmp_path):
    given = compat.Given(algorithm="SAC", config={"lr": 1.0})
    found = compat.inspect(CASE.path, algorithm="PPO", given=given)
    assert (found.algorithm, found.config["lr"]) == ("PPO", 1.0)
    with pytest.raises(MissingInformationError, match="action space"):
        compat.convert(BARE.checkpoint, tmp_path / "new", algorithm="PPO", to="onnx")
    done = compat.convert(
        BARE.checkpoint, "unused", algorithm="PPO", action_space="Discrete(2)", dry_run=True
    )
    assert done.trains_on
    assert done.target is None
    assert done.translation.algorithm == "PPO"
    with pytest.raises(ConfigError, match="not a space"):
        compat.inspect(BARE.checkpoint, action_space="Circle(3)")
