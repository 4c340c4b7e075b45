"""Custom models of TensorFlow train with it, as long as the installed Ray can."""

import json
from importlib.util import find_spec

import pytest

from tests.processes import ROOT, start

SCRIPT = ROOT / "tests/scripts/tensorflow_models.py"

pytestmark = [
    pytest.mark.ray,
    pytest.mark.nightly,
    # It is imported by the script alone, which asks for Keras 2 first.
    pytest.mark.skipif(not find_spec("tf_keras"), reason="pip install 'rllib-compat[tensorflow]'"),
]


@pytest.mark.slow("five trainers in a process of their own, each twice")
@pytest.mark.parametrize("framework", ["tf", "tf2"])
def test_models_of_tensorflow_train_are_saved_restored_and_act(framework, tmp_path):
    done = start(tmp_path, "run", SCRIPT, framework)
    rows = [row.removeprefix("FOUND ") for row in done.stdout.splitlines() if "FOUND" in row]
    found = {name: facts for row in rows for name, facts in json.loads(row).items()}
    assert set(found) == {"PPO", "LSTM", "distribution", "DQN", "SAC"}, done.stderr[-3000:]
    for name, facts in found.items():
        policy = facts.pop("policy")
        assert "TF" in policy, name
        assert ("TF2" in policy or "_eager" in policy) is (framework == "tf2"), name
        # The optimizers of these train other variables than all of the model's.
        if name not in ("DQN", "SAC"):
            assert facts["moments"] > 0, name
        elif framework == "tf2":
            assert "starts from zero" in done.stderr + done.stdout
            del facts["same moments"]
        del facts["moments"]
        assert facts.pop("iteration") == 2, name
        assert all(facts.values()), (name, facts)
