"""What Ray writes into its own configs: the API stack, frozen states, kept copies."""

from __future__ import annotations

from rllib_compat.config.rule import Rule, dropped
from rllib_compat.config.values import common as v
from rllib_compat.neutral.report import Verdict

FAMILY = "internal"

RULES = (
    *dropped(
        FAMILY,
        "_enable_rl_module_api _enable_learner_api _enable_rl_trainer_api _enable_new_api_stack "
        "enable_rl_module_and_learner enable_env_runner_and_connector_v2",
        "the API stack is chosen for the whole config: pass api_stack=",
    ),
    *dropped(
        FAMILY,
        "algo_class class _is_frozen _disable_execution_plan_api _allow_unknown_subkeys "
        "_dont_auto_sync_env_runner_states _use_msgpack_checkpoints _validate_config "
        "__trial_info__ env_runner_group",
        "an inner key of RLlib",
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.MOVED,
            target="rl_module.rl_module_spec",
            old_target="",
            why=why,
            value=v.CODE,
        )
        for key, why in {
            "rl_module_spec": "",
            "_rl_module_spec": "kept by Ray under this name",
        }.items()
    ),
    *dropped(
        FAMILY,
        "rl_module_class",
        "a key of Ray 2.3 only",
        hint="pass rl_module(rl_module_spec=RLModuleSpec(module_class=…))",
    ),
)
