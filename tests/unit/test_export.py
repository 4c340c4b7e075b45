"""`convert --to onnx` and `--to safetensors`: what is written computes and holds what was read."""

import contextlib
import json
import re
import shutil
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from rllib_compat import Given, convert, load_policy
from rllib_compat.conversion.compare import WEIGHTS
from rllib_compat.errors import CompatError, MissingInformationError, NotYetError
from rllib_compat.networks.ops import in_onnx
from rllib_compat.networks.ops.in_numpy import ACTIVATIONS, OPS
from rllib_compat.neutral import install_command
from tests import docs
from tests.legacy.cases import all_cases, find
from tests.legacy.networks import given_if_asked, read
from tests.support import REFUSED

CASES = [case for case in all_cases() if str(case) not in REFUSED]


def of_every_kind():
    """Cases that together have every operation with every activation that the museum has."""
    seen, chosen = set(), []
    for case in CASES:
        try:
            _, networks = read(case)
        except MissingInformationError:  # gymnasium would tell its spaces
            continue
        steps = [step for network in networks.values() for step in network.graph.steps]
        kinds = {(step.op, str(step.settings.get("activation"))) for step in steps}
        if kinds - seen:
            seen |= kinds
            chosen.append(case)
    return chosen


def test_every_operation_and_activation_has_nodes():
    assert in_onnx.OPS.keys() == OPS.keys()
    assert in_onnx.ACTIVATIONS.keys() == ACTIVATIONS.keys()


def test_models_of_every_kind_of_network_compute_what_it_does(tmp_path):
    pytest.importorskip("onnx")
    for i, case in enumerate(of_every_kind()):
        done = convert(
            case.checkpoint, tmp_path / str(i), to="onnx", given=given_if_asked(case), inputs=20
        )
        assert done.differences, case
        assert all(row.ok and row.inputs for row in done.differences), case


def acting_cases():
    """Cases that together have every kind of action, with what old Rays did to it."""
    seen = {}
    for case in CASES:
        with contextlib.suppress(CompatError):
            policy = load_policy(case.checkpoint, given=given_if_asked(case))
            space, network = policy.action_space, policy.network
            kind = (type(space).__name__, *network.graph.outputs, network.graph.recurrent)
            era = case.ray >= "1.4"  # from then on, actions are stretched by default
            seen.setdefault((*kind, era, "filter.mean" in network.arrays), (case, policy))
    return list(seen.values())


def test_the_action_of_a_model_is_what_the_policy_does(tmp_path):
    """Filter, network, best action, stretching and clipping, against the policy in numpy."""
    reference = pytest.importorskip("onnx.reference")
    kinds, without = set(), set()
    for i, (case, policy) in enumerate(acting_cases()):
        convert(case.checkpoint, tmp_path / str(i), to="onnx", given=given_if_asked(case), inputs=5)
        model = reference.ReferenceEvaluator(str(tmp_path / f"{i}/{policy.policy_id}.onnx"))
        kind = type(policy.action_space).__name__
        if "action" not in model.output_names:
            without.add(kind)
            continue
        kinds.add(kind)
        graph = policy.network.graph
        fed = {name: np.zeros((20, *shape), np.float32) for name, shape in graph.inputs.items()}
        fed["obs"] = np.random.default_rng(i).normal(size=fed["obs"].shape).astype(np.float32)
        fed |= {f"state_in_{k}": fed[name] for k, name in enumerate(graph.states)}
        (action,) = model.run(["action"], {name: fed[name] for name in model.input_names})
        state = policy.get_initial_state(20) if policy.is_recurrent else None
        expected = policy.compute_actions(fed["obs"], state).actions
        assert action.shape == expected.shape, case
        # Two choices of nearly the same value may change places in float32.
        alike = np.isclose(action, expected, rtol=1e-4, atol=1e-4)
        assert alike.mean() > 0.9, (case, action, expected)
    assert kinds == {"Box", "Discrete", "MultiDiscrete"}
    assert without == {"TupleSpace"}


@pytest.mark.parametrize("form", ["policy", "onnx"])
def test_an_exported_policy_does_what_it_did(form, tmp_path):
    """Raw observations to actions of the environment, also where it explores."""
    pytest.importorskip("onnx" if form == "onnx" else "safetensors")
    for i, (case, policy) in enumerate(acting_cases()):
        file = tmp_path / f"{i}.rlpolicy"
        given = replace(given_if_asked(case), policies=(policy.policy_id,))
        convert(case.checkpoint, file, to=form, given=given, inputs=5)
        same = load_policy(file)
        assert (same.policy_id, same.action_space) == (policy.policy_id, policy.action_space)
        obs = np.random.default_rng(i).normal(size=(20, *policy.network.inputs))
        for explore in (False, True):
            try:
                old = policy.compute_actions(obs, explore=explore, seed=1)
            except NotYetError as error:
                with pytest.raises(NotYetError, match=re.escape(error.found)):
                    same.compute_actions(obs, explore=explore, seed=1)
                continue
            new = same.compute_actions(obs, explore=explore, seed=1)
            for name, value in {**old.extras, "actions": old.actions}.items():
                others = {**new.extras, "actions": new.actions}[name]
                for one, other in zip(_parts(value), _parts(others), strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-9, err_msg=f"{case} {name}")


def _parts(value):
    return value if isinstance(value, tuple) else [value]


def test_a_folder_to_share_has_a_card_with_the_return_of_its_trial(tmp_path):
    pytest.importorskip("safetensors")
    (case,) = find(ray="1.13.0", variant="tunerun")
    old = shutil.copytree(Path(case.checkpoint).parents[1], tmp_path / "trial")
    (old / "openaigym.video.0.mp4").write_bytes(b"a video")
    (old / "linked.mp4").symlink_to("/etc/hostname")
    old /= Path(case.checkpoint).relative_to(Path(case.checkpoint).parents[1])
    done = convert(old, tmp_path / "hub", to="hub", given=given_if_asked(case))
    assert (tmp_path / "hub/replay.mp4").read_bytes() == b"a video"
    card = (tmp_path / "hub/README.md").read_text()
    head = yaml.safe_load(card.split("\n---\n")[0])
    (metric,) = head["model-index"][0]["results"][0]["metrics"]
    results = json.loads((tmp_path / "hub/results.json").read_text())
    assert metric["value"] == results["mean_reward"] > 0
    assert json.loads((tmp_path / "hub/config.json").read_text())["algorithm"] == "PPO"
    assert load_policy(tmp_path / "hub").policy_id in done.networks


def test_text_of_a_checkpoint_is_quoted_in_the_card(tmp_path):
    pytest.importorskip("safetensors")
    evil = "`<script>|\n---\n# x"
    demo = resources.files("rllib_compat") / "demo_data"
    given = Given(overrides={}, config={"env": evil, "model": {"fcnet_hiddens": [32, 32]}})
    spaces = {"observation_space": "Box(4,)", "action_space": "Discrete(2)"}
    convert(demo, tmp_path / "hub", to="hub", algorithm="PPO", given=given, **spaces)
    card = (tmp_path / "hub/README.md").read_text()
    assert yaml.safe_load(card.split("\n---\n")[0])["tags"][-1] == evil
    assert "\n# x" not in card
    assert "`'<script>/" in card


def test_the_guide_s_example_plays_an_episode(tmp_path, monkeypatch, capsys):
    """onnxruntime's own class, or one with the same methods around onnx's reference."""
    reference = pytest.importorskip("onnx.reference")
    monkeypatch.chdir(tmp_path)
    convert(resources.files("rllib_compat") / "demo_data", "model", to="onnx")
    session = SimpleNamespace(InferenceSession=reference.ReferenceEvaluator)
    monkeypatch.setitem(sys.modules, "onnxruntime", session)
    page = docs.ROOT / "migration_guide/policy_without_ray.md"
    (code,) = (block.body for block in docs.blocks(page) if "onnxruntime" in block.body)
    exec(compile(code, str(page), "exec"), {})
    assert float(capsys.readouterr().out) > 0


def test_a_model_tells_what_it_is_of(tmp_path):
    onnx = pytest.importorskip("onnx")
    case = find(ray="1.13.0", framework="torch", variant="meanstd")[0]
    convert(case.checkpoint, tmp_path / "new", to="onnx", given=given_if_asked(case))
    model = onnx.load(tmp_path / "new/default_policy.onnx")
    told = {prop.key: prop.value for prop in model.metadata_props}
    assert told["algorithm"] == case.algorithm
    assert told["ray_version"] == "1.13.0"
    assert [value.name for value in model.graph.input] == ["obs"]
    assert "action_dist_inputs" in [value.name for value in model.graph.output]


def test_safetensors_hold_every_bit_with_its_name_and_the_graph(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    from safetensors import safe_open

    case = find(ray="1.13.0", framework="torch", variant="meanstd")[0]
    done = convert(case.checkpoint, tmp_path / "new", to="safetensors", given=given_if_asked(case))
    file = tmp_path / "new/default_policy.safetensors"
    _, networks = read(case)
    arrays = numpy.load_file(file)
    for name, array in networks["default_policy"].arrays.items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array)
    assert "filter.mean" in arrays
    with safe_open(file, "numpy") as opened:
        graph = json.loads(opened.metadata()["graph"])
    assert graph["outputs"]
    assert {row.output for row in done.differences} == {WEIGHTS}


def test_a_custom_model_s_arrays_go_to_safetensors_and_not_to_onnx(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    pytest.importorskip("onnx")
    (case,) = find(ray="2.0.1", variant="custommodel")
    given = given_if_asked(case)
    done = convert(case.checkpoint, tmp_path / "new", to="safetensors", given=given)
    arrays = numpy.load_file(tmp_path / "new/default_policy.safetensors")
    assert "enc.0.weight" in arrays
    assert done.report.exit_code == 1
    with pytest.raises(CompatError, match="custom model"):
        convert(case.checkpoint, tmp_path / "other", to="onnx", given=given)
    assert not (tmp_path / "other").exists()


def test_a_model_that_computes_something_else_is_not_delivered(tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    case = find(ray="1.13.0", framework="torch", variant="meanstd")[0]
    monkeypatch.setitem(in_onnx.ACTIVATIONS, "relu", lambda nodes, x: x)
    monkeypatch.setitem(in_onnx.ACTIVATIONS, "tanh", lambda nodes, x: x)
    with pytest.raises(CompatError, match="differ"):
        convert(case.checkpoint, tmp_path / "new", to="onnx", given=given_if_asked(case))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("library", ["onnx", "safetensors"])
def test_without_the_library_the_error_tells_the_command(library, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    case = find(ray="1.13.0", framework="torch", variant="meanstd")[0]
    with pytest.raises(CompatError, match=re.escape(install_command(library))):
        convert(case.checkpoint, tmp_path / "new", to=library, given=given_if_asked(case))
    assert not (tmp_path / "new").exists()
