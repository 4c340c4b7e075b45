"""The proof of a conversion: what rounding explains passes, and a wrong network never does."""

import ast
import shutil
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_compat import convert, verify
from rllib_compat.conversion import float32_errors, prepare, recordings
from rllib_compat.conversion.compare import compare_networks, compare_weights, sample_inputs
from rllib_compat.conversion.prove import find_assumptions
from rllib_compat.conversion.write import modules
from rllib_compat.errors import CheckpointError, VerificationError
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import Graph, Network, known
from rllib_compat.networks.graph import Step
from rllib_compat.networks.network import Target
from tests.legacy.cases import all_cases, case_of, find
from tests.legacy.networks import given_if_asked, read
from tests.support import REFUSED

SMALL = [
    case
    for case in all_cases()
    if str(case) not in REFUSED
    and str(case).split("/")[1]
    in {
        "ppo-tf-hiddens24x16",
        "ppo-tf-threelayers-elu",
        "ppo-torch-cont2-share",
        "ppo-torch-swish",
        "ppo-tf-lstm-prevar",
        "dqn-tf-small",
        "dqn-tf-rainbow",
        "sac-torch-asym2",
        "ddpg-torch-asym2",
        "ppo-tf2-images-share-tanh",
        "ppo-torch-attention",
    }
]
OTHER = {"relu": "tanh", "tanh": "relu", "elu": "selu", "swish": "relu", None: "tanh"}


def networks_of(case):
    _, networks = read(case)
    return networks


def outputs_differ(network, wrong):
    """Whether the proof tells a wrong network's outputs from the right one's."""
    batch = sample_inputs(network.graph, None, 100)
    rows = compare_networks({"p": network}, {"p": wrong.forward}, {"p": batch})
    return not all(row.ok for row in rows)


def graph_with(network, change):
    steps = tuple(change(step) for step in network.graph.steps)
    return replace(network, graph=replace(network.graph, steps=steps))


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_a_network_in_float32_is_the_same_network(case):
    for network in networks_of(case).values():
        batch = sample_inputs(network.graph, None, 200, seed=3)
        rows = compare_networks(
            {"p": network},
            {"p": lambda inputs, n=network: n.forward(inputs, np.float32)},
            {"p": batch},
        )
        assert all(row.ok for row in rows), rows


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_another_activation_is_refused(case):
    for network in networks_of(case).values():
        active = [s.name for s in network.graph.steps if s.settings.get("activation")]
        for name in active:

            def change(step, name=name):
                if step.name != name:
                    return step
                other = OTHER.get(step.settings["activation"], "tanh")
                return replace(step, settings={**step.settings, "activation": other})

            assert outputs_differ(network, graph_with(network, change)), name


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_a_bias_that_is_dropped_is_refused(case):
    for network in networks_of(case).values():
        for name, array in network.arrays.items():
            if name.endswith(".bias") and np.abs(array).max() > 1e-4 and "target" not in name:
                wrong = replace(network, arrays={**network.arrays, name: np.zeros_like(array)})
                assert outputs_differ(network, wrong), name


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_one_changed_weight_is_refused(data):
    """By the outputs or, where no output depends on it (a dead unit, a target), by the numbers."""
    case = data.draw(st.sampled_from(SMALL))
    network = data.draw(st.sampled_from(list(networks_of(case).values())))
    name = data.draw(st.sampled_from(sorted(network.arrays)))
    array = np.array(network.arrays[name], np.float32)
    index = data.draw(st.integers(0, array.size - 1))
    array.flat[index] += data.draw(st.sampled_from([1e-3, -1e-2, 0.5])) + array.flat[index] * 1e-3
    wrong = replace(network, arrays={**network.arrays, name: array})
    (row,) = compare_weights("p", network.module_state(), wrong.module_state())
    assert not row.ok


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_layers_in_another_order_are_refused_by_the_outputs(case):
    """Units of a hidden layer that are swapped on one side only: every number is still there."""
    for network in networks_of(case).values():
        kernels = [n for n, a in network.arrays.items() if n.endswith(".kernel") and a.ndim == 2]
        for name in kernels:
            if not name.startswith("target"):
                turned = network.arrays[name][::-1]
                if np.abs(turned - network.arrays[name]).max() > 1e-3:
                    wrong = replace(network, arrays={**network.arrays, name: turned})
                    assert outputs_differ(network, wrong), name


def dense(kernel):
    """A network of one layer."""
    graph = Graph({"obs": kernel.shape[:1]}, (Step("dense", "out", ("obs",)),), {"y": "out"})
    arrays = {"out.kernel": kernel}
    return Network(
        kind="dense",
        summary="",
        scheme="",
        arrays=arrays,
        target=Target(None, {}),
        names=(),
        graph=graph,
    )


def test_a_badly_conditioned_network_is_accepted_within_its_own_error():
    rng = np.random.default_rng(0)
    kernel = np.repeat(rng.normal(size=(64, 2)), 2, axis=0)
    kernel[1::2] *= -1 + 1e-6  # pairs that cancel
    network = dense((1e6 * kernel).astype(np.float32))
    batch = {"obs": np.repeat(rng.normal(1.0, 1.0, (50, 64)), 2, axis=1).astype(np.float32)}
    other = lambda x: {"y": np.stack([x["obs"] @ network.arrays["out.kernel"]])[0]}  # noqa: E731
    (row,) = compare_networks({"p": network}, {"p": other}, {"p": batch})
    assert row.absolute > 1e-2, "the old fixed tolerance would have refused it"
    assert row.ok
    assert row.inconclusive, "and the report says that the proof sees little here"


def test_a_network_whose_layers_are_saturated_is_still_the_same_network():
    """Of its inputs' rounding nothing is left, but its later layers round as ever."""
    case = case_of("1.13.0/dqn-torch-noisy-atoms-duel")
    checkpoint, networks = read(case)
    (policy_id, network), *_ = networks.items()
    batch = {k: v * 1e6 for k, v in sample_inputs(network.graph, None, 200).items()}
    rows = compare_networks(networks, modules.build(checkpoint, networks), {policy_id: batch})
    assert all(row.ok for row in rows), rows


def test_the_errors_of_small_rows_are_not_those_of_large_ones():
    network = dense(np.eye(3, dtype=np.float32)[:, :2] * np.float32(1 / 3))
    batch = {"obs": np.array([[1e6, 1e6, 0.0], [1.0, 1.0, 0.0]], np.float32).repeat(20, 0)}
    errors = float32_errors(network, batch, network.forward(batch))["y"]
    assert errors[:20].min() > 1e-3
    assert errors[20:].max() < 1e-6


# A recording of the old Ray


RECORDED = [
    case
    for case in all_cases()
    if str(case)
    in {
        "0.5.3/ppo-tf-share-tanh",
        "0.5.3/dqn-tf-rainbow",
        "0.6.6/ppo-tf-lstm-prevar",
        "0.7.6/sac-tf-small",
        "0.8.5/ddpg-torch-asym2",
        "0.8.5/ppo-tf-threepolicies",
        "1.0.1/ppo-torch-dictobs",
        "1.9.2/ppo-torch-meanstd",
        "1.13.0/es-torch-meanstd",
        "1.13.0/ppo-tf-attention",
        "2.0.1/ppo-tf-meanstd",
        "2.3.1/ppo-torch-meanstd24x16",
        "1.13.0/ppo-tf2-images-share-tanh",
        "2.7.2/ppo-torch_learner-lstm",
        "2.40.0/sac-torch_new-cont",
    }
]


@pytest.mark.parametrize("case", RECORDED, ids=str)
def test_what_a_museum_ray_recorded_proves_that_its_file_was_read_rightly(case, tmp_path):
    arrays = recordings.load(case.path / "expected.npz")
    given = given_if_asked(case)
    done = convert(
        case.checkpoint, tmp_path / "new", to="msgpack", given=given, inputs=5, recorded=arrays
    )
    rows = [row for row in done.differences if row.kind == "recorded"]
    assert {row.policy_id for row in rows} == set(done.networks)
    activations = [row for row in done.assumptions if row.what == "activation"]
    assert activations
    if "vf_preds" in {row.output for row in rows}:
        assert all(row.proven for row in activations)
    if "meanstd" in case.variant:  # 1e-8 or 1e-6 was added to deviations, by Ray
        assert "filter" in {row.output for row in rows}


TANH = next(c for c in find(ray="0.6.6") if c.variant == "onelayer-tanh")


@pytest.fixture
def edited(tmp_path):
    """A checkpoint whose config names another activation than it was trained with."""
    old = shutil.copytree(TANH.path, tmp_path / "old")
    (old / "params.pkl").unlink()
    params = old / "params.json"
    text = params.read_text()
    assert text.count('"tanh"') == 1
    params.write_text(text.replace('"tanh"', '"relu"'))
    return old / TANH.checkpoint.relative_to(TANH.path)


def test_a_wrong_activation_is_refused_where_a_recording_is_given(edited, tmp_path):
    given = given_if_asked(TANH)
    arrays = recordings.load(TANH.path / "expected.npz")
    with pytest.raises(VerificationError) as caught:
        convert(edited, tmp_path / "new", to="msgpack", given=given, inputs=5, recorded=arrays)
    assert "action_dist_inputs is off by up to" in caught.value.found
    assert "vf_preds is off by up to" in caught.value.found
    assert "config" in caught.value.fix
    assert not (tmp_path / "new").exists()


def test_without_a_recording_a_wrong_activation_is_at_least_listed_as_assumed(edited, tmp_path):
    given = given_if_asked(TANH)
    done = convert(edited, tmp_path / "new", to="msgpack", given=given, inputs=5)
    (row,) = [row for row in done.assumptions if row.what == "activation"]
    assert row.value == "relu"
    assert row.source == "config: model.fcnet_activation"
    assert not row.proven
    told = done.to_dict()
    assert {"what": "activation", "proven": False}.items() <= told["assumed"][0].items()
    arrays = recordings.load(TANH.path / "expected.npz")
    found = verify(edited, tmp_path / "new", given=given, inputs=5, recorded=arrays)
    assert not found.equal
    assert {row.output for row in found.differences if not row.ok} == {
        "action_dist_inputs",
        "vf_preds",
    }


def test_bounds_heads_filters_and_activations_are_listed_as_assumed():
    def assumed(name):
        case = case_of(name)
        plan = prepare(read_checkpoint(case.checkpoint), given_if_asked(case), to="msgpack")
        return {row.what: row for row in find_assumptions(plan.checkpoint, known(plan.networks))}

    ddpg = assumed("0.8.5/ddpg-torch-asym2")
    assert ddpg["bounds of the actions"].source == "the action space"
    assert ddpg["activation"].value == "relu"
    filtered = assumed("1.9.2/ppo-torch-meanstd")
    assert "MeanStdFilter" in filtered["observation filter"].value
    assert "Discrete" in filtered["head"].value
    assert "conv" not in filtered
    assert assumed("0.8.5/ppo-torch-images-share-tanh")["strides and padding"].value


def test_a_recording_of_something_else_is_an_error_and_writes_nothing(tmp_path):
    other = recordings.load(find(ray="0.6.6", algorithm="ES")[0].path / "expected.npz")
    given = given_if_asked(TANH)
    for arrays in ({}, {"nobody/obs": np.zeros((3, 7))}, other):
        with pytest.raises(CheckpointError, match="ecording"):
            convert(
                TANH.checkpoint,
                tmp_path / "new",
                to="msgpack",
                given=given,
                inputs=5,
                recorded=arrays,
            )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no", b"not a zip"])
def test_a_recording_that_is_no_npz_is_a_clear_error(content, tmp_path):
    file = tmp_path / "recorded.npz"
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"Not a \.npz"):
        recordings.load(file)


def test_a_recording_with_pickles_in_it_is_not_loaded(tmp_path):
    np.savez(tmp_path / "recorded.npz", **{"p/obs": np.array([{}], object)})
    with pytest.raises(CheckpointError, match=r"Not a \.npz"):
        recordings.load(tmp_path / "recorded.npz")


def test_the_recorder_is_python_that_the_oldest_ray_understands():
    text = (resources.files("rllib_compat") / "record.py").read_text("utf-8")
    ast.parse(text, feature_version=(3, 5))
    assert "rllib_compat" not in text
