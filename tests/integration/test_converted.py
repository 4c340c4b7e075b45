"""Converted checkpoints in the installed Ray: the same numbers, loaded and trained on."""

import json
import shutil

import numpy as np
import pytest

from rllib_compat import Given, convert, registry, verify
from rllib_compat.conversion import compare_outputs, float32_errors
from rllib_compat.errors import RayNotSupportedError, TargetExistsError
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import load_rl_modules
from rllib_compat.ray_versions import checkpoints, releases
from tests.legacy.cases import all_cases, find, one_of_each
from tests.legacy.networks import given_if_asked, given_of, read, recorded
from tests.marks import CONVERSIONS, marked
from tests.processes import start
from tests.support import REFUSED
from tests.trees import digest_tree

pytestmark = CONVERSIONS

WORKER1 = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
LEAGUE = find(ray="1.13.0", framework="torch", algorithm="PPO")
TRAINED_ON = [
    WORKER1,
    next(c for c in find(ray="0.6.6") if c.variant == "cont-meanstd"),
    next(c for c in find(ray="1.13.0", framework="tf2") if c.variant == "freelogstd"),
    next(c for c in find(ray="2.40.0") if c.algorithm == "PPO" and c.variant == "small-relu"),
    next(c for c in find(ray="2.0.1") if c.algorithm == "A2C"),
    next(c for c in find(ray="0.7.6") if c.algorithm == "PG"),
    next(c for c in find(ray="0.6.6") if c.algorithm == "PG"),  # of which no critic was stored
]
CONVERTED = [c for c in all_cases() if str(c) not in REFUSED]


def kind(case):
    """What a conversion depends on; of Rays before the newest only what Ray itself has to load."""
    reader = registry.of(case.algorithm).reader
    if releases.installed() >= releases.NEWEST:
        return reader, case.features, case.layout
    return reader, bool(case.features & {"lstm", "attention", "images"}), case.layout


ON_EACH_PUSH = one_of_each(CONVERTED, kind)


def converted(case, target, **options):
    """Converts as a user would: with the spaces given only where they are asked for."""
    known = any(p.action_space for p in read_checkpoint(case.checkpoint).policies.values())
    given = Given(algorithm="PPO") if known else given_of(case)
    return convert(case.checkpoint, target, given=given, inputs=50, **options)


@pytest.mark.parametrize("case", marked(CONVERTED, ON_EACH_PUSH), ids=str)
def test_the_new_module_computes_what_the_old_policy_computed(case, tmp_path):
    before = digest_tree(case.path)
    convert(case.checkpoint, tmp_path / "new", given=given_if_asked(case), inputs=50)
    checkpoint, networks = read(case)
    for policy_id, network in networks.items():
        known = recorded(case, policy_id, network)
        if known is None:
            continue
        inputs, expected = known
        filtered = checkpoint.policies[policy_id].observation_filter
        if not registry.of(case.algorithm).reader and filtered and filtered.stats:
            # A module that is written alone holds the filter, and takes raw observations.
            raw = case.expected(policy_id).observations[""]
            inputs = {**inputs, "obs": raw.reshape(inputs["obs"].shape)}
        outputs = load_rl_modules(tmp_path / "new", [policy_id])[policy_id](inputs)
        exact = network.forward(known[0])
        errors = float32_errors(network, known[0], exact)
        for row in compare_outputs(policy_id, expected, outputs, errors):
            assert row.ok, row
    assert digest_tree(case.path) == before


@pytest.mark.matrix
@pytest.mark.parametrize("case", TRAINED_ON, ids=str)
def test_from_checkpoint_loads_it_and_training_goes_on_where_it_stopped(case, load, tmp_path):
    given = Given(algorithm=case.algorithm, env=case.about["env"])
    done = convert(case.checkpoint, tmp_path / "new", given=given, inputs=50)
    algorithm = load(tmp_path / "new")
    counters = done.checkpoint.counters
    assert algorithm.training_iteration == counters.iteration
    before = {k: v.clone() for k, v in algorithm.get_module().state_dict().items()}
    result = algorithm.train()
    assert result["training_iteration"] == counters.iteration + 1
    sampled = result["env_runners"]["num_env_steps_sampled_lifetime"]
    assert sampled > (counters.env_steps or 0)
    assert any((before[k] != v).any() for k, v in algorithm.get_module().state_dict().items())


@pytest.mark.matrix
def test_the_observation_filter_goes_on_with_the_old_statistics(load, tmp_path):
    done = converted(WORKER1, tmp_path / "new")
    (old,) = done.checkpoint.policies["default_policy"].observation_filter.stats
    algorithm = load(tmp_path / "new")
    connector = next(
        c for c in algorithm.env_runner._env_to_module.connectors if "MeanStd" in type(c).__name__
    )
    (new,) = connector._filters.values()
    observations = WORKER1.expected().observations[""]
    filtered = np.stack([new(np.asarray(o, np.float32), update=False) for o in observations])
    np.testing.assert_allclose(filtered, WORKER1.expected().inputs, atol=1e-4)
    assert new.running_stats.n == old.count


def test_a_league_with_a_mapping_that_was_code_loads_with_all_its_policies(load, tmp_path):
    case = next(c for c in LEAGUE if "league" in c.variant)
    done = converted(case, tmp_path / "new")
    assert len(done.networks) == 20
    assert any(f.rule == "policy-mapping" for f in done.report)
    algorithm = load(tmp_path / "new")
    for policy_id in done.networks:
        assert algorithm.get_module(policy_id) is not None


def test_what_was_converted_reads_back_as_the_same_arrays(tmp_path):
    done = converted(WORKER1, tmp_path / "new")
    again = read_checkpoint(tmp_path / "new")
    assert again.source.layout == checkpoints.writes_checkpoint_version()
    assert again.counters.iteration == done.checkpoint.counters.iteration
    assert again.counters.env_steps == done.checkpoint.counters.env_steps
    network = done.networks["default_policy"]
    for name, array in network.module_state().items():
        np.testing.assert_array_equal(again.policies["default_policy"].weights[name], array)
    (old,) = done.checkpoint.policies["default_policy"].observation_filter.stats
    (new,) = again.policies["default_policy"].observation_filter.stats
    assert new.count == old.count
    np.testing.assert_allclose(new.mean, old.mean)
    np.testing.assert_allclose(new.m2, old.m2)


@pytest.mark.matrix
def test_a_converted_checkpoint_converts_and_verifies_again(tmp_path):
    converted(WORKER1, tmp_path / "new")
    convert(tmp_path / "new", tmp_path / "newer", inputs=20)
    assert verify(WORKER1.checkpoint, tmp_path / "newer", inputs=20).equal


def test_our_msgpack_form_becomes_a_checkpoint_that_trains_on(tmp_path):
    convert(WORKER1.checkpoint, tmp_path / "packed", to="msgpack", inputs=5)
    convert(tmp_path / "packed", tmp_path / "new", inputs=5)
    assert verify(WORKER1.checkpoint, tmp_path / "new", inputs=20).equal


@pytest.mark.matrix
def test_state_as_msgpack_is_written_where_ray_can_and_refused_where_not(load, tmp_path):
    case = next(c for c in find(ray="0.8.0") if c.variant == "fc32relu-share")
    if checkpoints.writes_checkpoint_version() == "2.0":
        with pytest.raises(RayNotSupportedError, match="pickle only"):
            converted(case, tmp_path / "new", state_format="msgpack")
        assert not (tmp_path / "new").exists()
        return
    converted(case, tmp_path / "new", state_format="msgpack")
    assert (tmp_path / "new" / "algorithm_state.msgpack").is_file()
    algorithm = load(tmp_path / "new")
    assert algorithm.training_iteration == 2
    done = converted(WORKER1, tmp_path / "filter", state_format="msgpack")
    assert "msgpack-filter" in {f.rule for f in done.report}


def test_the_callers_ray_goes_on_after_a_conversion(tmp_path):
    import ray

    converted(WORKER1, tmp_path / "new")
    assert ray.is_initialized()


def test_a_target_that_is_there_is_refused_before_ray_does_anything(tmp_path):
    with pytest.raises(TargetExistsError):
        converted(WORKER1, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.newest
def test_the_demo_does_what_the_readme_says(tmp_path):
    done = start(tmp_path, "demo")
    assert done.returncode == 0, done.stderr
    assert "resumes training" in done.stdout
    assert "trained iteration 3" in done.stdout


@pytest.mark.newest
def test_convert_on_the_command_line_prints_the_proof_as_json(tmp_path):
    old = shutil.copytree(WORKER1.path, tmp_path / "old")
    # Its file does not tell the algorithm; a guess would be a warning, and exit code 1.
    done = start(tmp_path, "convert", old, tmp_path / "new", "--json", "--algorithm", "PPO")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["largest_difference"] < 1e-5
    assert told["facts"]["result"] == "resumes training"
