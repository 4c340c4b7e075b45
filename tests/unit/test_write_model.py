"""A custom model of plain layers: guessed from its arrays, and written as a module to edit."""

import ast
import functools
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_compat import inspect
from rllib_compat.conversion import prepare, recordings
from rllib_compat.conversion.module_source import (
    Chain,
    Layer,
    guess,
    make_module_source,
    source_of,
)
from rllib_compat.errors import CheckpointError, NotYetError
from rllib_compat.formats import read_checkpoint
from rllib_compat.neutral import spaces
from rllib_compat.neutral.spaces import DictSpace
from tests.legacy.cases import find
from tests.legacy.networks import given_of

CUSTOM = find(variant="custommodel")


def arrays(torch, **layers):
    """Arrays of layers by name: `[in, out]` or `[h, w, in, out]`."""
    rng, made = np.random.default_rng(0), {}
    for name, shape in layers.items():
        kernel = rng.normal(size=shape).astype(np.float32)
        if torch:
            kernel = kernel.T if kernel.ndim == 2 else kernel.transpose(3, 2, 0, 1)
        slash = "." if torch else "/"
        made[f"{name}{slash}{'weight' if torch else 'kernel'}"] = kernel
        made[f"{name}{slash}bias"] = rng.normal(size=shape[-1]).astype(np.float32)
    return made


@pytest.mark.parametrize("case", CUSTOM, ids=str)
def test_the_layers_of_every_real_custom_model_are_found_and_its_activation_is_recorded(case):
    checkpoint = read_checkpoint(case.checkpoint)
    made = make_module_source(checkpoint, given_of(case))
    assert [layer.gives for layer in made.chain.policy] == [20, 2]
    assert [layer.gives for layer in made.chain.value] == [20, 1]
    assert made.chain.shared == 1
    assert made.activation is None
    assert "The weights do not show it" in made.source
    told = make_module_source(
        checkpoint, given_of(case), recordings.load(case.path / "expected.npz")
    )
    assert told.activation == "elu"
    assert "activation = nn.functional.elu" in told.source
    compile(told.source, "my_model.py", "exec")


@pytest.mark.parametrize("torch", [True, False])
@pytest.mark.parametrize(
    ("layers", "inputs", "policy", "value"),
    [
        ({"a": (4, 8), "b": (8, 8), "out": (8, 3), "value": (8, 1)}, (4,), "a b out", "a b value"),
        (
            {"a": (4, 8), "out": (8, 3), "va": (4, 6), "v": (6, 1)},
            (4,),
            "a out",
            "va v",
        ),
        (
            {"a": (4, 8), "p": (8, 5), "q": (8, 7), "out": (5, 3), "v": (7, 1)},
            (4,),
            "a p out",
            "a q v",
        ),
        ({"a": (4, 8), "out": (8, 3)}, (4,), "a out", ""),
        (
            {"c1": (4, 4, 3, 6), "c2": (3, 3, 6, 8), "d": (32, 9), "out": (9, 3), "v": (9, 1)},
            (10, 10, 3),
            "c1 c2 d out",
            "c1 c2 d v",
        ),
    ],
)
def test_chains_are_found_in_torchs_and_tensorflows_arrays(torch, layers, inputs, policy, value):
    chain, why = guess(arrays(torch, **layers), inputs, 3)
    assert chain is not None, why
    assert " ".join(layer.name for layer in chain.policy) == policy
    assert " ".join(layer.name for layer in chain.value) == value
    graph, own = chain.graph("tanh")
    outputs = graph.evaluate(own, {"obs": np.zeros((2, *inputs))})
    assert outputs["action_dist_inputs"].shape == (2, 3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lstm.weight_ih_l0": np.zeros((8, 4))}, "no dense or convolution layer"),
        (arrays(True, a=(5, 8), out=(8, 3)), "no chain"),
        (arrays(True, a=(4, 8), out=(8, 3), left=(9, 9)), "no chain"),
    ],
)
def test_what_is_no_chain_is_no_guess(given, said):
    chain, why = guess(given, (4,), 3)
    assert chain is None
    assert said in why


def test_a_network_of_rllibs_own_needs_no_module():
    case = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
    with pytest.raises(NotYetError, match="custom"):
        make_module_source(read_checkpoint(case.checkpoint), given_of(case))


def test_a_recording_that_no_activation_fits_is_told():
    case = CUSTOM[0]
    arrays = recordings.load(case.path / "expected.npz")
    odd = {k: v + 1 if "dist_inputs" in k else v for k, v in arrays.items()}
    with pytest.raises(CheckpointError, match="relu is off by"):
        make_module_source(read_checkpoint(case.checkpoint), given_of(case), odd)


def test_what_is_written_computes_whatever_the_layers_are_called(tmp_path, monkeypatch, run):
    (case,) = find(variant="custom-meanstd")  # one of its layers is called `value`
    monkeypatch.syspath_prepend(tmp_path)
    recording = case.path / "expected.npz"
    told = ("convert", case.checkpoint, tmp_path / "new", "--recorded", recording)
    for more in (["--write-model", tmp_path / "theirs.py"], ["--model", "theirs:MyModule"]):
        code, out, err = run(*told, *more)
        assert code in (0, 1), err
    assert "pass --recorded" not in out, "it was given"


def test_the_file_is_written_once_and_the_next_command_is_told(tmp_path, run):
    case = next(c for c in CUSTOM if c.ray == "2.3.1")
    file = tmp_path / "my_model.py"
    command = ("convert", case.checkpoint, tmp_path / "new", "--write-model", file)
    code, out, _ = run(*command)
    assert code == 0
    assert "--model my_model:MyModule" in out.replace("\n", " ")
    assert "class MyModule" in file.read_text()
    assert not (tmp_path / "new").exists()
    assert run(*command)[0] == 2


def test_inspect_guesses_a_custom_model_and_lists_every_array():
    found = inspect(CUSTOM[0].checkpoint)
    (policy,) = found.policies.values()
    assert policy.network == "custom model; a guess: 4-20-2, value 1 on 1 of the same layers"
    told = found.to_dict()
    assert {(*row["shape"], row["dtype"]) for row in told["arrays"]} >= {(20, "float32")}
    assert len(told["arrays"]) == 6


@pytest.mark.parametrize(
    ("ray", "variant", "names"),
    [
        ("0.6.6", "onelayer-tanh", {"fc1/kernel", "fc_out/bias"}),
        ("1.13.0", "freelogstd", {"fc_1/kernel"}),
    ],
)
def test_arrays_that_were_stored_without_names_are_listed_under_the_names_they_had(
    ray, variant, names
):
    case = next(c for c in find(ray=ray) if c.variant == variant and c.framework != "torch")
    from tests.legacy.networks import given_if_asked

    rows = inspect(case.checkpoint, given=given_if_asked(case)).arrays
    found = {row.name for row in rows}
    assert any(name in listed for name in names for listed in found), found
    assert sum(np.prod(row.shape) for row in rows) > 100


def test_a_module_that_the_caller_gives_is_asked_though_the_config_names_no_custom_model():
    """It was ignored, and RLlib's own network taken."""
    case = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
    given = replace(given_of(case), model="no_such_module:Mine")
    with pytest.raises(CheckpointError, match=r"no_such_module:Mine.* can't be imported"):
        prepare(read_checkpoint(case.checkpoint), given, to="checkpointable")


def shape_of(source):
    """A program without its constants and the names of layers: what it would do."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = type(node.value).__name__
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            node.attr = "layer"
    return ast.dump(tree)


#: Text with which one could try to leave a literal, a comment or a line.
ODD = st.text(st.sampled_from("ab_ 0.\"'\\\n\r\x00{}()=;#:,\u2028\ud800é"), max_size=12)


@functools.cache
def a_policy():
    return next(iter(read_checkpoint(CUSTOM[0].checkpoint).policies.values()))


def module_of(layer, policy_id, part):
    """The source for a chain with a layer, of a policy, that sees a dict with a part."""
    first, last = (
        Layer(name, np.zeros((4, 4), np.float32), None) for name in (layer, f"net.{layer}")
    )
    seen = DictSpace({part: spaces.box(-1.0, 1.0, (4,))})
    policy = replace(a_policy(), policy_id=policy_id, observation_space=seen)
    return source_of(Chain((4,), (first, last), (), torch=True), "relu", policy)


@given(layer=ODD, policy_id=ODD, part=ODD)
def test_no_text_of_a_checkpoint_becomes_code(layer, policy_id, part):
    """A layer called `x": getattr(…)…` ran with the very command that was printed next."""
    made = module_of("plain", policy_id, part)
    assert shape_of(made) == shape_of(module_of("plain", "p0", "seen"))
    made.encode()
    net = module_of(f"net.{layer}", policy_id, part)
    plain = ".".join("x" * (layer.count(".") + 1))
    assert shape_of(net) == shape_of(module_of(f"net.{plain}", "p0", "seen"))
    with suppress(NotYetError):  # it can't be an attribute
        assert shape_of(module_of(layer, "p0", "seen")) == shape_of(module_of(plain, "p0", "seen"))
