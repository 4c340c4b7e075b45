"""Vision networks and networks for observations of several parts."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_compat.errors import CheckpointError, MissingInformationError, NotConvertibleError
from rllib_compat.networks import (
    DEFAULT,
    Graph,
    ModelSettings,
    from_canonical,
    plan_optimizers,
    to_canonical,
)
from rllib_compat.networks import read as read_policy
from rllib_compat.networks.families.dense import VISION_SCHEMES
from rllib_compat.networks.graph import Builder
from rllib_compat.networks.observations import require_components
from rllib_compat.networks.optimizers import torch_slots
from rllib_compat.networks.trunks.vision import (
    DEFAULTS,
    Filter,
    filters_for,
    same_padding,
    size_after,
)
from rllib_compat.networks.unnamed import vision_order
from rllib_compat.neutral import PolicyState, Verdict
from rllib_compat.neutral.spaces import DictSpace, TupleSpace, box
from tests.legacy.cases import all_cases
from tests.legacy.networks import read
from tests.support import REFUSED
from tests.unit.networks.graphs import assert_torch_computes

VISION = [c for c in all_cases() if "images" in c.variant or "cnn" in c.variant]
PARTS = [c for c in all_cases() if c.variant.startswith("parts")]
SIZES = st.integers(1, 12)
PAIRS = st.tuples(st.integers(1, 5), st.integers(1, 5))


def one(cases, **wanted):
    """The first case of a Ray and a framework."""
    return next(c for c in cases if all(getattr(c, k) == v for k, v in wanted.items()))


# Convolutions ------------------------------------------------------------------------------------


@given(image=st.tuples(SIZES, SIZES), kernel=PAIRS, stride=PAIRS, torch=st.booleans())
def test_same_padding_leaves_one_pixel_for_each_stride(image, kernel, stride, torch):
    filter_ = Filter(1, kernel, stride)
    padding = same_padding(image, filter_, torch=torch)
    assert torch or min(min(sides) for sides in padding) >= 0
    expected = tuple(-(-n // s) for n, s in zip(image, stride, strict=True))
    assert size_after(image, filter_, padding) == expected


# The filters of 64x64 came for a network that flattens what is left.
@pytest.mark.parametrize("size", [size for size in DEFAULTS if size != (64, 64)])
def test_default_convolutions_fit_their_images(size):
    filters = filters_for({"conv_filters": None}, (*size, 3))
    for filter_ in filters[:-1]:
        size = size_after(size, filter_, same_padding(size, filter_, torch=False))
    assert size_after(size, filters[-1], ((0, 0), (0, 0))) == (1, 1)


@pytest.mark.parametrize("given_", ["16", [[16, 4]], [[16, [4, 4, 4], 2]]])
def test_filters_that_are_none_are_an_error(given_):
    with pytest.raises(CheckpointError, match="is not a list of"):
        filters_for({"conv_filters": given_}, (42, 42, 3))


def test_images_without_default_filters_are_an_error():
    with pytest.raises(CheckpointError, match=r"no default convolutions for images of \(50, 50, 3"):
        filters_for({}, (50, 50, 3))


@st.composite
def convolutions(draw):
    """A graph of convolutions over an image, its arrays, and a batch."""
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    rows, columns, channels = (draw(st.integers(4, 9)) for _ in range(3))
    image, build, arrays = (rows, columns, channels), Builder(), {}
    takes, size = "obs", (rows, columns)
    for i in range(draw(st.integers(1, 3))):
        filter_ = Filter(draw(st.integers(1, 4)), draw(PAIRS), draw(PAIRS))
        padding = same_padding(size, filter_, torch=draw(st.booleans()))
        if min(size_after(size, filter_, padding)) < 1:
            break
        size = size_after(size, filter_, padding)
        takes = build.add(
            "conv",
            f"conv.{i}",
            takes,
            activation=draw(st.sampled_from(["relu", "tanh", "elu", None])),
            stride=list(filter_.stride),
            padding=[list(sides) for sides in padding],
        )
        shape = (*filter_.kernel, channels, filter_.channels)
        arrays |= {f"conv.{i}.kernel": rng.normal(size=shape)}
        arrays |= {f"conv.{i}.bias": rng.normal(size=filter_.channels)}
        channels = filter_.channels
        if draw(st.booleans()):
            takes = build.add("swish", f"conv.{i}.swish", takes)
            arrays[f"conv.{i}.swish.slope"] = np.asarray(rng.normal())
    flat = build.add("flatten", "flat", takes, channels_first=draw(st.booleans()))
    raveled = build.add("ravel", "raveled", "obs", axes=3)
    outputs = {"features": build.add("concat", "features", flat, raveled)}
    batch = rng.normal(size=(2, *image))
    return Graph({"obs": image}, tuple(build.steps), outputs), arrays, batch


@given(convolutions())
def test_torch_computes_what_numpy_does(made):
    graph, arrays, batch = made
    assert_torch_computes(graph, arrays, {"obs": batch}, 1e-3)


def test_gray_images_are_convolved_right_where_the_stride_is_larger_than_the_kernel():
    torch = pytest.importorskip("torch")
    from rllib_compat.networks.ops.in_numpy import OPS
    from rllib_compat.networks.ops.in_torch import OPS as OURS

    rng = np.random.default_rng(0)
    image, kernel = rng.normal(size=(2, 4, 4, 1)), rng.normal(size=(4, 2, 1, 1))
    settings = {"stride": [1, 3], "padding": [[1, 2], [0, 0]]}
    right = OPS["conv"]({"kernel": kernel}, settings, image)
    own = {"kernel": torch.tensor(kernel, dtype=torch.float32)}
    made = OURS["conv"](own, settings, torch.tensor(image, dtype=torch.float32))
    np.testing.assert_allclose(made.numpy(), right, atol=1e-5)


# Names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", VISION, ids=str)
def test_no_array_of_a_vision_network_is_lost_or_invented(case):
    checkpoint, networks = read(case)
    for policy_id, network in networks.items():
        weights = checkpoint.policies[policy_id].weights
        if not isinstance(weights, dict):
            continue
        scalars = sum(np.ndim(array) == 0 for array in weights.values())
        assert len(network.arrays) + len(network.unused) == len(weights) - scalars
        assert network.module_state().keys() == {f"net.{name}" for name in network.arrays}


def test_torch_names_come_back_the_same():
    case = one(VISION, ray="1.13.0", framework="torch", variant="images")
    _, networks = read(case)
    network = networks["default_policy"]
    # `_model.1` behind a padding, `_model.0` without one: back, the first row serves both.
    names = from_canonical(VISION_SCHEMES["torch"], network.arrays)
    again, left = to_canonical(VISION_SCHEMES["torch"], names)
    assert not left
    for name, array in network.arrays.items():
        np.testing.assert_array_equal(again[name], array)


def test_keras_lists_are_sorted_by_the_distance_from_the_outputs():
    policy = ["conv.0", "conv.1", "conv_out"]
    assert vision_order(policy, 2, shares=True) == [*policy, "value"]
    own = ["value_conv.0", "conv.0", "value_conv.1", "conv.1", "value", "conv_out"]
    assert vision_order(policy, 2, shares=False) == own


# What is told, and what is refused ---------------------------------------------------------------


def policy_and_settings(case, **changes):
    checkpoint, _ = read(case)
    policy = dataclasses.replace(checkpoint.policies["default_policy"], **changes)
    return policy, ModelSettings.of(checkpoint, policy)


def test_filters_of_another_checkpoint_are_a_contradiction():
    policy, settings = policy_and_settings(one(VISION, ray="1.13.0", variant="images"))
    model = {**settings.model, "conv_filters": [[4, [5, 5], 2], [8, [3, 3], 2], [12, [3, 3], 1]]}
    with pytest.raises(CheckpointError, match="the config is not this checkpoint's"):
        read_policy(policy, dataclasses.replace(settings, model=model))


def test_images_of_another_size_are_a_contradiction():
    case = one(VISION, ray="1.13.0", framework="torch", variant="images")
    other = box(0, 255, (20, 20, 3), "uint8")
    policy, settings = policy_and_settings(case, observation_space=other)
    with pytest.raises(CheckpointError, match=r"leave an image of \(3, 3\)"):
        read_policy(policy, settings)


def test_without_a_space_the_image_is_asked_for():
    case = one(VISION, ray="1.13.0", framework="torch", variant="images")
    policy, settings = policy_and_settings(case, observation_space=None)
    with pytest.raises(MissingInformationError, match="space is unknown"):
        read_policy(policy, settings)


def test_what_the_preprocessor_did_to_frames_is_told():
    from rllib_compat.networks.observations import preprocessed_image, scaling_findings

    space = box(0, 255, (210, 160, 3), "uint8")
    settings = ModelSettings.from_config({"model": {"dim": 42, "grayscale": True}}, {})
    assert preprocessed_image(space, settings) == (42, 42, 1)
    policy = PolicyState("default_policy", {}, observation_space=space)
    (found,) = scaling_findings(policy, settings)
    assert "42x42, made gray, (x - 128) / 128" in found.message
    off = ModelSettings.from_config({"_disable_preprocessor_api": True}, {})
    assert preprocessed_image(space, off) == (210, 160, 3)
    assert not scaling_findings(policy, off)


def test_vectors_that_were_taken_for_an_ataris_memory_are_told():
    from rllib_compat.networks.observations import scaling_findings

    policy = PolicyState("default_policy", {}, observation_space=box(0, 1, (128,)))
    (found,) = scaling_findings(policy, ModelSettings.from_config({}, {}))
    assert "(x - 128) / 128" in found.message


# Several parts -----------------------------------------------------------------------------------


def test_parts_are_numbered_by_sorted_names_and_lie_in_the_order_of_the_space():
    image, inner = box(0, 1, (2, 2, 3)), TupleSpace((box(0, 1, (1,)), box(0, 1, (4,))))
    space = DictSpace({"z": box(0, 1, (3,)), "a": image, "m": inner})
    policy = PolicyState("default_policy", {}, observation_space=space)
    found = [(part.start, part.size) for part in require_components(policy)]
    assert found == [(3, 12), (15, 1), (16, 4), (0, 3)]


@pytest.mark.parametrize(
    "case", [c for c in PARTS if c.ray != "1.13.0" or c.framework == "tf"], ids=str
)
def test_value_branches_of_the_parts_are_told_as_unused(case):
    _, networks = read(case)
    network = networks["default_policy"]
    assert network.unused
    assert all("value" in name for name in network.unused)


def test_parts_that_ray_did_not_save_are_refused_with_the_reason():
    case = one(PARTS, ray="1.13.0", framework="torch")
    with pytest.raises(NotConvertibleError, match="parts 0, 2 are not in the checkpoint"):
        read(case)


# Optimizers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in (*VISION, *PARTS)
        if case.ray in ("1.13.0", "2.3.1") and str(case) not in REFUSED
    ],
    ids=str,
)
def test_the_moments_of_adam_are_carried(case):
    checkpoint, networks = read(case)
    states, (found,) = plan_optimizers(checkpoint.policies, networks)
    assert found.verdict in (Verdict.EXACT, Verdict.DERIVED), found.message
    state, network = states["default_policy"][DEFAULT], networks["default_policy"]
    squares = torch_slots(state, network)
    assert squares.keys() == network.module_state().keys()
    assert state.step > 1
