"""Custom models of TensorFlow: what keeps a config with TensorFlow, and what refuses it."""

import os
import sys
from types import SimpleNamespace

import pytest
from ray.rllib.models.catalog import ModelCatalog
from ray.rllib.models.tf.tf_action_dist import TFActionDistribution
from ray.rllib.models.tf.tf_modelv2 import TFModelV2
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2

import rllib_compat as compat
from rllib_compat.errors import RefusedKeysError
from rllib_compat.ray_versions import tensorflow


class Model(TFModelV2):
    pass


class Distribution(TFActionDistribution):
    pass


class Torch(TorchModelV2):
    pass


ModelCatalog.register_custom_model("of tensorflow", Model)
MODEL = {"model": {"custom_model": "of tensorflow"}}


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(tensorflow, "what_is_missing", str)


def framework(config, algorithm="PPO", legacy_ray="1.13.0", **options):
    translated = compat.translate(config, algorithm=algorithm, legacy_ray=legacy_ray, **options)
    assert not translated.refused, list(translated.report)
    return translated.calls.get("framework", {}).get("framework", "torch")


@pytest.mark.parametrize(
    ("config", "ray", "expected"),
    [
        (MODEL, "1.13.0", "tf"),
        ({"framework": "tf", **MODEL}, "today", "tf"),
        ({"framework": "tf2", **MODEL}, "1.13.0", "tf2"),
        ({"framework": "tfe", **MODEL}, "1.0.1", "tf2"),
        ({"use_pytorch": False, **MODEL}, "0.8.5", "tf"),
        ({"eager": True, **MODEL}, "0.8.5", "tf2"),
        ({"model": {"custom_model": Model}}, "1.13.0", "tf"),
        ({"model": {"custom_action_dist": Distribution}}, "1.13.0", "tf"),
        (
            {
                "multiagent": {
                    "policies": {"a": (None, None, None, {"model": {"custom_model": Model}})}
                }
            },
            "1.13.0",
            "tf",
        ),
        ({"framework": "tf"}, "1.13.0", "torch"),
        ({"framework": "tf", "model": {"custom_model": Torch}}, "1.13.0", "torch"),
        ({"framework": "tf", "model": {"custom_model": "of nobody"}}, "1.13.0", "torch"),
    ],
)
@pytest.mark.usefixtures("installed")
def test_a_model_of_tensorflow_keeps_tensorflow_and_nothing_else_does(config, ray, expected):
    assert framework(config, legacy_ray=ray) == expected


@pytest.mark.usefixtures("installed")
def test_switches_of_its_eager_mode_stay_and_sessions_are_rays_with_a_warning():
    config = {"framework": "tf2", "eager_tracing": False, "eager_max_retraces": 7, **MODEL}
    own = {"tf_session_args": {"inter_op_parallelism_threads": 7}}
    translated = compat.translate({**config, **own}, algorithm="PPO", legacy_ray="1.13.0")
    settings = {"framework": "tf2", "eager_tracing": False, "eager_max_retraces": 7}
    assert translated.calls["framework"].items() >= settings.items()
    (lost,) = [f for f in translated.report if f.path.endswith("inter_op_parallelism_threads")]
    assert lost.severity.value == "warning"


@pytest.mark.parametrize(
    ("algorithm", "config", "says"),
    [
        ("A2C", MODEL, r"A2C has policies for torch alone.*PPO, SAC"),
        ("PPO", {"framework": "torch", **MODEL}, r"the framework is torch.*'tf2'"),
        ("PPO", {"use_pytorch": True, **MODEL}, r"the framework is torch.*'tf2'"),
    ],
)
@pytest.mark.usefixtures("installed")
def test_what_cannot_train_it_says_so_at_once(algorithm, config, says):
    translated = compat.translate(config, algorithm=algorithm, legacy_ray="0.8.5")
    with pytest.raises(RefusedKeysError, match=says):
        _ = translated.algorithm_config


@pytest.mark.parametrize(
    ("module", "says"),
    [(None, "is not installed"), (SimpleNamespace(__version__="3.5.0"), "has Keras 3.5.0")],
)
def test_without_tensorflow_or_its_keras_the_extra_is_named(module, says, monkeypatch):
    monkeypatch.setattr(tensorflow.importlib.util, "find_spec", lambda _: module)
    if module is not None:
        monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(keras=module))
    translated = compat.translate(MODEL, algorithm="PPO", legacy_ray="1.13.0")
    with pytest.raises(RefusedKeysError, match=rf"{says}.*rllib-compat\[tensorflow\]"):
        _ = translated.algorithm_config


@pytest.mark.parametrize(("found", "chosen"), [(None, None), (object(), "1")])
def test_old_code_gets_the_keras_of_its_time_where_it_is_installed(found, chosen, monkeypatch):
    monkeypatch.setattr(tensorflow.importlib.util, "find_spec", lambda _: found)
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "")
    monkeypatch.delenv("TF_USE_LEGACY_KERAS")
    tensorflow.prefer_legacy_keras()
    assert os.environ.get("TF_USE_LEGACY_KERAS") == chosen
