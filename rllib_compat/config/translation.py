"""The result of a translation, and how it becomes an `AlgorithmConfig`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rllib_compat.algorithms.legacy_training import LegacyTraining
from rllib_compat.config.code import Program, python_code
from rllib_compat.config.defaults import todays_default
from rllib_compat.config.deferred import ModelPerPolicy
from rllib_compat.networks.families.q_head import EXPLORING
from rllib_compat.neutral.deferred import build
from rllib_compat.neutral.errors import RefusedKeysError
from rllib_compat.neutral.report import Report, Severity, Verdict
from rllib_compat.ray_versions import configs, releases, replay

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

    from rllib_compat.runtime.envs import EnvSettings


@dataclass
class Translation:
    """A legacy config as calls of Ray's `AlgorithmConfig`.

    Attributes:
        algorithm: The target algorithm's name ("PPO"); of a removed one, its own.
        legacy_algorithm: What the config was for.
        api_stack: "new" or "old".
        calls: Method of `AlgorithmConfig` → its arguments.
        report: What became of every key.
        legacy_config: A copy of what came in.
        env: What `EnvSettings` takes.
        legacy_callbacks: The callbacks as they came in.
        needs_old_stack: The paths of the keys that only the old API stack can run.
        legacy_training: How its Ray trained, which a Trainer keeps; None: as it does today.
    """

    algorithm: str
    legacy_algorithm: str
    api_stack: str
    calls: dict[str, dict[str, Any]]
    report: Report
    legacy_config: dict[str, Any]
    env: Mapping[str, Any] = field(default_factory=dict)
    legacy_callbacks: Any = None
    needs_old_stack: tuple[str, ...] = ()
    legacy_training: LegacyTraining | None = None

    @property
    def refused(self) -> bool:
        """Whether a key or the algorithm itself can't mean anything on the installed Ray."""
        return any(finding.verdict is Verdict.REFUSED for finding in self.report)

    @property
    def lost(self) -> bool:
        """Whether something is refused, not known, or left out although it did something."""
        return any(
            finding.verdict in (Verdict.REFUSED, Verdict.UNKNOWN)
            or (finding.verdict is Verdict.DROPPED and finding.severity is not Severity.INFO)
            for finding in self.report
        )

    @property
    def truncation_terminates(self) -> bool:
        """Whether an episode that a limit cuts is over for what learns; old keys denied it."""
        env = self.env
        goes_on = env.get("no_done_at_end") or (env.get("horizon") and env.get("soft_horizon"))
        legacy = self.legacy_training
        return legacy is not None and legacy.time_limit_terminates and not goes_on

    @cached_property
    def env_settings(self) -> EnvSettings:
        """The environment and what has to be wrapped around it."""
        from rllib_compat.runtime.envs import EnvSettings

        return EnvSettings(**build(dict(self.env)))

    @cached_property
    def algorithm_config(self) -> AlgorithmConfig:
        """The config of the installed Ray, built at the first use. It is not validated.

        Raises:
            RefusedKeysError: The report has refused keys.
        """
        refused = [f for f in self.report if f.verdict is Verdict.REFUSED]
        if refused:
            raise RefusedKeysError(
                f"Settings of the {self.legacy_algorithm} config that are refused: {len(refused)}.",
                findings=refused,
            )
        config = configs.todays_config(self.algorithm)
        for method, arguments in self.calls.items():
            getattr(config, method)(**build(arguments))
        if self.api_stack == "new":
            from rllib_compat.runtime.adapted_config import adapt_config

            adapt_config(config)
        return config

    def to_python(self) -> str:
        """The same config as Python code, ready to run."""
        return python_code(self.algorithm, self.calls, adapted=self._is_adapted())

    def _is_adapted(self) -> bool:
        """Whether `adapt_config` does anything for this config."""
        if self.api_stack == "old":
            return False
        env = self.calls.get("environment", {}).get("env")
        if env is not None:
            from rllib_compat.runtime.connectors import may_need_preprocessors

            source = Program().expression(env)
            name = source.value if isinstance(source, ast.Constant) else None
            if name is None or may_need_preprocessors(name):
                return True
        buffer = todays_default(self.algorithm, "training.replay_buffer_config.type")[1]
        unweighted = replay.weighted_buffer(str(buffer)) is not None
        of_learners = self.calls.get(configs.learner_method(), {})
        optimizer = "legacy_optimizer" in (of_learners.get("learner_config_dict") or {})
        adapted = (
            unweighted
            or optimizer
            or self._explores_otherwise()
            or "callbacks_class" in self.calls.get("callbacks", {})
        )
        discrete = self.algorithm == "SAC" and not releases.trains_discrete_sac()
        filtered = self.algorithm in ("APPO", "IMPALA") and (
            "env_to_module_connector" in self.calls.get("env_runners", {})
        )
        return adapted or discrete or filtered or self.algorithm == "CQL"

    def _explores_otherwise(self) -> bool:
        """Whether a module is to explore in a way that Ray's modules do not."""
        calls = self.calls.get("rl_module", {})
        spec = calls.get("rl_module_spec")
        several = spec.models.values() if isinstance(spec, ModelPerPolicy) else ()
        models = [calls.get("model_config") or {}, *several]
        return any(one.get(key) is not None for one in models for key in EXPLORING)
