"""Policies that are built of the old losses, postprocessing and mixins compute what they did.

`tests/legacy/losses` has what Ray 1.13.0 computed with the same weights, on the same steps.
"""

import importlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
from ray.rllib.policy.sample_batch import SampleBatch

from rllib_compat.config import default_config as config_defaults
from rllib_compat.legacy import lookup
from rllib_compat.ray_versions import configs
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.recordings import Recording, close

pytestmark = OTHERS_WARNINGS

RECORDS = Path(__file__).parents[2] / "legacy" / "losses" / "1.13.0"
#: The beginning of a case → the module of the policy's parts, the algorithm, the loss, and what
#: adds advantages.
ALGORITHMS = {
    "a2c": ("a3c", "A2C", "actor_critic_loss", "add_advantages"),
    "pg": ("pg", "PG", "pg_torch_loss", "post_process_advantages"),
    "marwil": ("marwil", "MARWIL", "marwil_loss", "postprocess_advantages"),
    "impala": ("vtrace", "IMPALA", "build_vtrace_loss", None),
}
CASES = [
    path.stem
    for path in sorted(RECORDS.glob("*.npz"))
    if path.stem.partition("-")[0] in ALGORITHMS and "lstm" not in path.stem
]
MIXINS = ("EntropyCoeffSchedule", "LearningRateSchedule", "ValueNetworkMixin")


def built(recorded, case):
    """A policy of the old parts, with the recorded weights."""
    module, algorithm, loss, postprocess = ALGORITHMS[case.partition("-")[0]]
    parts = importlib.import_module(f"rllib_compat.legacy.policies.{module}")
    mixins = importlib.import_module("rllib_compat.legacy.policies.mixins")
    weights = recorded.below("weights")
    actions = recorded.chunks()[0]["actions"]
    space = gymnasium.spaces.Discrete(3)
    if actions.ndim == 2:
        space = gymnasium.spaces.Box(-1.0, 1.0, actions.shape[1:], np.float32)
    config = configs.todays_config("PPO").to_dict()
    old = config_defaults(algorithm, legacy_ray="1.13.0")
    config |= {name: old[name] for name in old if name not in ("model", "callbacks")}
    config |= {"framework": "torch", "rollout_fragment_length": 10, "num_gpus": 0}
    config |= {n: _value(v) for n, v in recorded.below("config").items()}
    separate = any("_value_branch_separate" in name for name in weights)
    model = {"fcnet_hiddens": [8, 6], "fcnet_activation": "tanh", "vf_share_layers": not separate}
    config["model"] = {**config["model"], **model}
    build = lookup("ray.rllib.policy.torch_policy_template", "build_torch_policy")
    policy_class = build(
        "Built",
        loss_fn=getattr(parts, loss),
        postprocess_fn=getattr(parts, postprocess) if postprocess else None,
        extra_action_out_fn=getattr(parts, "vf_preds_fetches", None),
        get_batch_divisibility_req=lambda policy: policy.config["rollout_fragment_length"],
        before_loss_init=getattr(parts, "setup_mixins", None),
        mixins=[getattr(mixins, name) for name in MIXINS],
    )
    policy = policy_class(gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), space, config)
    policy.set_weights(weights)
    if config.get("beta"):  # the loss has been tried on zeros, which moves the average
        parts.setup_mixins(policy, None, None, config)
    return policy, getattr(parts, loss)


def _value(array):
    import ast

    return ast.literal_eval(str(array)) if array.dtype.kind == "U" else array.item()


def batch_of(policy, recorded):
    """The recorded steps in a batch, after postprocessing."""
    made = []
    for chunk in recorded.chunks():
        steps = len(chunk["rewards"])
        columns = {n: chunk[n] for n in ("actions", "rewards")}
        for name in ("action_logp", "action_dist_inputs"):
            if name in chunk:
                columns[name] = chunk[name]
        columns |= {"obs": chunk["obs"][:-1], "new_obs": chunk["obs"][1:]}
        columns["terminateds"] = (
            np.arange(steps) == steps - 1 if chunk["done"] else np.zeros(steps, bool)
        )
        columns["truncateds"] = np.zeros(steps, bool)
        with torch.no_grad():
            policy.model({"obs": torch.from_numpy(columns["obs"])})
            columns["vf_preds"] = policy.model.value_function().numpy()
        made.append(policy.postprocess_trajectory(SampleBatch(columns)))
    return made


@pytest.mark.parametrize("case", CASES)
def test_losses_and_advantages_are_those_of_ray_1_13(case):
    recorded = Recording(RECORDS / f"{case}.npz")
    policy, loss = built(recorded, case)
    made = batch_of(policy, recorded)
    for chunk, batch in zip(recorded.chunks(), made, strict=True):
        if "advantages" in chunk:
            close(batch["advantages"], chunk["advantages"], 1e-5)
    from ray.rllib.policy.sample_batch import concat_samples

    batch = policy._lazy_tensor_dict(concat_samples(made))
    total = loss(policy, policy.model, policy.dist_class, batch)
    name = "told.1.total_loss" if "told.1.total_loss" in recorded.found else "loss.total"
    close(total.item(), recorded.found[name], 1e-5)
    if recorded.below("gradients"):
        total.backward()
        for name, gradient in recorded.below("gradients").items():
            close(dict(policy.model.named_parameters())[name].grad, gradient, 1e-5)
