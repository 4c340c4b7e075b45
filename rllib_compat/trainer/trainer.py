"""`Trainer`: the class of Ray 0.5 – 2.0 around today's `Algorithm`."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import ray
from ray.rllib.env.env_context import EnvContext
from ray.tune import Trainable

from rllib_compat import ray_versions
from rllib_compat.adapters.callbacks import CallbackAdapter, adapt_callbacks
from rllib_compat.adapters.connectors import add_preprocessors
from rllib_compat.adapters.envs import make_env, resolve_env_name
from rllib_compat.adapters.episodes import ONLY_POLICY
from rllib_compat.adapters.overrides import tame
from rllib_compat.adapters.policies import LegacyPolicy
from rllib_compat.adapters.results import complete_evaluation
from rllib_compat.config import Translation, default_config, translate
from rllib_compat.errors import GoneError
from rllib_compat.report import Severity, Verdict
from rllib_compat.trainer import inference
from rllib_compat.trainer.workers import LegacyWorkers

logger = logging.getLogger(__name__)

GONE = {
    "optimizer": "the learners took its place: trainer.algorithm.learner_group",
    "train_exec_impl": "override Algorithm.training_step",
    "execution_plan": "override Algorithm.training_step",
    "local_evaluator": "use trainer.workers.local_worker()",
    "remote_evaluators": "use trainer.workers.remote_workers()",
    "import_model": "load the weights yourself and call trainer.set_weights()",
    "import_policy_model_from_h5": "load the weights yourself and call trainer.set_weights()",
}


class Trainer(Trainable):  # type: ignore[misc]  # Ray has no types
    """Trains with the installed Ray, and looks like the Trainer of Ray 0.5 – 2.0.

    It owns an `Algorithm` and is none: what legacy code may ask is written out here, and what can't
    exist any more raises `GoneError` with where it went.

    Args:
        config: The legacy config.
        env: The environment, if the config does not name it: a name, a class or a creator.
        logger_creator: Makes a logger of `ray.tune.logger` for the config.
        algorithm: The algorithm's name, if neither the class nor the config's keys tell it.
        legacy_ray: The Ray that the config was written for; its defaults are then kept.
        **trainable: What Tune passes on to a Trainable.

    Attributes:
        algorithm: The `Algorithm` that does the work.
        translation: How the config was translated; `translation.report` has a line for every key.
        raw_user_config: The config as it was given.
        config: The config with the defaults of its Ray.

    Raises:
        ConfigError: The config can't be translated.
    """

    _algorithm_name: ClassVar[str | None] = None
    _default_config: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        env: Any = None,
        logger_creator: Callable[[dict[str, Any]], Any] | None = None,
        *,
        algorithm: str | None = None,
        legacy_ray: str | None = None,
        **trainable: Any,
    ) -> None:
        given = dict(config or {})
        if env is not None:
            given["env"] = env
        self._asked: dict[str, Any] = {
            "algorithm": algorithm or type(self)._algorithm_name,
            "legacy_ray": legacy_ray,
        }
        self._local_is_stale = False
        self._logger = logger_creator(given) if logger_creator else None
        if not ray.is_initialized():
            ray.init(ignore_reinit_error=True)
        accepted = inspect.signature(Trainable.__init__).parameters
        super().__init__(given, **{k: v for k, v in trainable.items() if k in accepted})

    def setup(self, config: dict[str, Any]) -> None:
        """Translates the config and builds the algorithm."""
        self.raw_user_config = config
        self.translation: Translation = translate({**self._default_config, **config}, **self._asked)
        self._note_env_name()
        for finding in self.translation.report.at_least(Severity.WARNING):
            logger.warning("%s: %s %s", finding.path, finding.message, finding.hint)
        release = self._asked["legacy_ray"]
        defaults = default_config(
            self.translation.legacy_algorithm, **({"legacy_ray": release} if release else {})
        )
        self.config = {**defaults, **self.translation.legacy_config}
        algorithm_config = self.translation.algorithm_config.copy(copy_frozen=False)
        if not _adapts(algorithm_config.callbacks_class):
            # Also without callbacks, the adapter completes the result.
            algorithm_config.callbacks(adapt_callbacks(algorithm_config.callbacks_class))
        if algorithm_config.enable_env_runner_and_connector_v2:
            add_preprocessors(algorithm_config)
        tame(algorithm_config)
        try:
            self.algorithm = ray_versions.build_algorithm(algorithm_config)
        except Exception:
            # An error in a remote environment comes out as another one, and in the log only.
            make_env(self.translation.env_settings, EnvContext(config.get("env_config") or {}, 0))
            raise
        for callbacks in self._adapters():
            callbacks.owner = self

    # Training

    def step(self) -> dict[str, Any]:
        """One iteration; `train()` calls it."""
        result: dict[str, Any] = self.algorithm.train()
        self._local_is_stale = True
        return result

    def log_result(self, result: dict[str, Any]) -> None:
        """Logs a result, by the logger that the constructor was given too."""
        super().log_result(result)
        if self._logger is not None:
            self._logger.on_result(result)

    @property
    def iteration(self) -> int:
        """How many times `train()` was called."""
        return int(self.algorithm.iteration)

    @property
    def callbacks(self) -> Any:
        """The user's callbacks object in this process."""
        return next((a.legacy[0] for a in self._adapters() if a.legacy), None)

    def evaluate(self) -> dict[str, Any]:
        """Evaluates the policies now.

        Returns:
            Legacy and today's keys, below `evaluation`.
        """
        return {"evaluation": complete_evaluation(self.algorithm.evaluate())}

    def cleanup(self) -> None:
        """Stops the algorithm; `stop()` calls it."""
        self.algorithm.stop()

    # Checkpoints

    def save(self, checkpoint_dir: str | None = None) -> Any:
        """Saves a checkpoint.

        Returns:
            Its path, as it always was; Tune, which has a storage, gets what it wants.
        """
        if self._storage is not None:
            return super().save(checkpoint_dir)
        path = Path(checkpoint_dir or self.logdir) / f"checkpoint_{self.iteration:06d}"
        path.mkdir(parents=True, exist_ok=True)
        self.save_checkpoint(str(path))
        return str(path)

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Writes today's checkpoint, which `Algorithm.from_checkpoint` loads too."""
        self.algorithm.save_checkpoint(checkpoint_dir)

    def restore(self, checkpoint_path: Any) -> None:
        """Restores a checkpoint: of this class, of today's `Algorithm`, or of an old Ray."""
        if isinstance(checkpoint_path, (str, Path)):
            self.load_checkpoint(str(Path(checkpoint_path).expanduser()))
        else:
            super().restore(checkpoint_path)

    def load_checkpoint(self, checkpoint_dir: str) -> None:
        """Loads what `save_checkpoint` wrote, or a legacy checkpoint after its conversion."""
        from rllib_compat.trainer.legacy_checkpoints import as_todays

        with as_todays(Path(checkpoint_dir), self) as path:
            self.algorithm.load_checkpoint(str(path))
        self._iteration = self.algorithm.iteration
        self.workers.sync_weights()
        self._local_is_stale = False

    # Acting

    def compute_single_action(
        self,
        observation: Any,
        state: list[Any] | None = None,
        prev_action: Any = None,
        prev_reward: float | None = None,
        info: Mapping[str, Any] | None = None,
        policy_id: str = ONLY_POLICY,
        full_fetch: bool = False,
        explore: bool | None = None,
        **_: Any,
    ) -> Any:
        """Computes the action for one observation of the environment.

        The observation is preprocessed and filtered (without changing the filter's statistics),
        and the action is unsquashed or clipped, as in training.

        Returns:
            The action; with `state` or `full_fetch`: (action, state, extras).
        """
        request = inference.Request(observation, state, prev_action, prev_reward, info)
        (computed,) = self._compute([request], policy_id, explore)
        if state or full_fetch:
            return computed.action, computed.state, computed.extras
        return computed.action

    compute_action = compute_single_action

    def compute_actions(
        self,
        observations: Mapping[Any, Any],
        state: Mapping[Any, list[Any]] | None = None,
        prev_action: Mapping[Any, Any] | None = None,
        prev_reward: Mapping[Any, float] | None = None,
        info: Mapping[Any, Any] | None = None,
        policy_id: str = ONLY_POLICY,
        full_fetch: bool = False,
        explore: bool | None = None,
        **_: Any,
    ) -> Any:
        """Computes actions for observations by any key, of one policy.

        Returns:
            Actions by key; with `state` or `full_fetch`, states and extras by key too.
        """
        requests = [
            inference.Request(
                observation,
                (state or {}).get(key),
                (prev_action or {}).get(key),
                (prev_reward or {}).get(key),
                (info or {}).get(key),
            )
            for key, observation in observations.items()
        ]
        computed = dict(zip(observations, self._compute(requests, policy_id, explore), strict=True))
        actions = {key: one.action for key, one in computed.items()}
        if not (state or full_fetch):
            return actions
        states = {key: one.state for key, one in computed.items()}
        return actions, states, {key: one.extras for key, one in computed.items()}

    def _compute(
        self, requests: list[inference.Request], policy_id: str, explore: bool | None
    ) -> list[inference.Computed]:
        if not self.algorithm.config.enable_env_runner_and_connector_v2:
            return inference.compute_on_old_stack(self.algorithm, requests, policy_id, explore)
        self.sync_local_runner()
        explore = self.algorithm.config.explore if explore is None else explore
        steps = ("env_runners", "num_env_steps_sampled_lifetime")
        return inference.compute(
            self.algorithm.env_runner,
            requests,
            policy_id,
            explore=explore,
            timestep=int(self.algorithm.metrics.peek(steps, default=0)),
        )

    # Policies and workers

    def get_policy(self, policy_id: str = ONLY_POLICY) -> Any:
        """The policy of that id, or None; what is set in it reaches the learners."""
        found = self.workers.local_worker().get_policy(policy_id)
        if not isinstance(found, LegacyPolicy):
            return found  # nothing, or the old API stack's own policy
        return LegacyPolicy(
            policy_id,
            found.model,
            self.algorithm.config,
            lambda weights: self.set_weights({policy_id: weights}),
        )

    def get_weights(self, policies: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """The weights by policy and name, as arrays."""
        return dict(self.algorithm.get_weights(None if policies is None else list(policies)))

    def set_weights(self, weights: Mapping[str, Mapping[str, Any]]) -> None:
        """Sets weights by policy and name, in the learners and in all workers."""
        if self.algorithm.learner_group is None:
            self.algorithm.set_weights(weights)
            self.workers.sync_weights()
            return
        learner = {"rl_module": {policy: dict(values) for policy, values in weights.items()}}
        # `Algorithm.set_weights` does this, and then calls a method that only raises.
        self.algorithm.set_state({"learner_group": {"learner": learner}})
        self.workers.sync_weights()

    @property
    def workers(self) -> LegacyWorkers:
        """All workers."""
        return LegacyWorkers(self, self.algorithm.env_runner_group)

    @property
    def evaluation_workers(self) -> LegacyWorkers | None:
        """All workers that evaluate, if the config asks for any."""
        group = self.algorithm.eval_env_runner_group
        return LegacyWorkers(self, group) if group is not None else None

    def sync_local_runner(self) -> None:
        """Gives the local env runner the weights that were trained last.

        Ray sends them only to those that sample.
        """
        if self._local_is_stale:
            self.workers.sync_weights()
            self._local_is_stale = False

    @classmethod
    def get_default_config(cls) -> dict[str, Any]:
        """The config that the legacy class started from."""
        return {**default_config(cls._algorithm_name or "PPO"), **cls._default_config}

    @classmethod
    def with_updates(
        cls,
        *,
        name: str | None = None,
        default_config: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> type[Trainer]:
        """Makes a class with other defaults, as `build_trainer` classes could.

        Raises:
            GoneError: Something else was to be updated; it was part of another architecture.
        """
        if more:
            raise GoneError(
                f"A trainer has no {', '.join(more)} to update any more.",
                where=f"{cls.__name__}.with_updates()",
                fix="override Algorithm.training_step, Learner or RLModule",
            )
        members = {
            "_algorithm_name": cls._algorithm_name,
            "_default_config": default_config or cls._default_config,
        }
        return type(name or cls.__name__, (cls,), members)

    @classmethod
    def default_resource_request(cls, config: Mapping[str, Any]) -> Any:
        """What Tune reserves for a trial."""
        translation = translate({**cls._default_config, **config}, algorithm=cls._algorithm_name)
        algorithm_config = translation.algorithm_config
        return algorithm_config.algo_class.default_resource_request(algorithm_config)

    @classmethod
    def resource_help(cls, config: Mapping[str, Any]) -> str:
        """What Tune says when there are too few resources."""
        return (
            "You can adjust the resource requests by setting `num_workers`, `num_gpus`, and other "
            f"configs. The config of this trainer is: {config}"
        )

    def __getattr__(self, name: str) -> Any:
        if name in GONE:
            raise GoneError(
                f"A trainer has no `{name}` any more.", where=f"trainer.{name}", fix=GONE[name]
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _note_env_name(self) -> None:
        env = self.translation.env_settings.env
        _, note = resolve_env_name(env) if isinstance(env, str) else (env, None)
        if note:
            self.translation.report.add("env.name", Verdict.NOTE, "$.env", note)

    def _adapters(self) -> list[CallbackAdapter]:
        held = ray_versions.callbacks_of(self.algorithm)
        return [callbacks for callbacks in held if isinstance(callbacks, CallbackAdapter)]


def _adapts(callbacks_class: Any) -> bool:
    return isinstance(callbacks_class, type) and issubclass(callbacks_class, CallbackAdapter)
