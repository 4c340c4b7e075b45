"""What the configs of these algorithms start from, where that is not what all configs do.

The defaults of the last Ray that had them (2.10). The translation of a config reads them, too, and
needs no Ray for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

#: Algorithm → attribute of its config → default.
DEFAULTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "A2C": {
            "entropy_coeff": 0.01,
            "grad_clip": 40.0,
            "lambda_": 1.0,
            "lr": 0.0001,
            "microbatch_size": None,
            "min_time_s_per_iteration": 10,
            "num_env_runners": 2,
            "rollout_fragment_length": "auto",
            "use_critic": True,
            "use_gae": True,
            "vf_loss_coeff": 0.5,
        },
        "ARS": {
            "action_noise_std": 0.0,
            "eval_prob": 0.03,
            "noise_size": 250_000_000,
            "noise_stdev": 0.02,
            "num_env_runners": 2,
            "num_rollouts": 32,
            "offset": 0,
            "report_length": 10,
            "rollouts_used": 32,
            "sgd_stepsize": 0.01,
        },
        "ES": {
            "action_noise_std": 0.01,
            "episodes_per_batch": 1000,
            "eval_prob": 0.03,
            "l2_coeff": 0.005,
            "noise_size": 250_000_000,
            "noise_stdev": 0.02,
            "num_env_runners": 10,
            "report_length": 10,
            "stepsize": 0.01,
            "train_batch_size": 10_000,
        },
        "PG": {
            "lr": 0.0004,
            "rollout_fragment_length": "auto",
            "train_batch_size": 200,
        },
    }
)
