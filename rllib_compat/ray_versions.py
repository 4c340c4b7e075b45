"""Every difference between the supported Ray releases.

No other module asks which Ray is installed. Each function here has one meaning for all releases,
and its comment says which release changed what.
"""

from __future__ import annotations

import copy
import inspect
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rllib_compat.neutral.errors import RayNotSupportedError

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

OLDEST = Version("2.40")
NEWEST = Version("2.60")


@cache
def installed() -> Version:
    """The version of the installed Ray, read without importing it.

    Raises:
        RayNotSupportedError: Ray is not installed, or too old. A newer one than we know is taken.
    """
    try:
        version = Version(metadata.version("ray"))
    except metadata.PackageNotFoundError as error:
        raise RayNotSupportedError(
            "Ray is not installed.",
            fix=f"pip install 'ray[rllib,tune]>={OLDEST},<={NEWEST}.*' torch",
        ) from error
    if version < OLDEST:
        raise RayNotSupportedError(
            f"Ray {version} is installed; this package works with Ray {OLDEST} to {NEWEST}.",
            fix=f"pip install 'ray[rllib,tune]>={OLDEST}'",
        )
    return version


def writes_checkpoint_version() -> str:
    """The version of the Checkpointable format that the installed Ray writes.

    Ray 2.40 – 2.43 write 2.0, Ray 2.44 and later 2.1 (`ray/rllib/utils/checkpoints.py`).
    """
    return "2.1" if installed() >= Version("2.44") else "2.0"


@contextmanager
def quiet_ray(*, num_cpus: int) -> Iterator[None]:
    """A small local Ray for as long as the block runs, unless one is running; errors only."""
    import ray

    started = not ray.is_initialized()
    try:
        with quiet_logs():
            if started:
                ray.init(
                    num_cpus=num_cpus,
                    include_dashboard=False,
                    configure_logging=False,
                    log_to_driver=False,
                    object_store_memory=128 * 1024 * 1024,
                )
            yield
    finally:
        if started:
            ray.shutdown()


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Of what Ray says in the block, errors only: the rest is about its own old parts."""
    loggers = [logging.getLogger(name) for name in ("ray", "ray.rllib", "ray.tune")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def build_algorithm(config: AlgorithmConfig) -> Algorithm:
    """Builds an algorithm; `build` became `build_algo` in Ray 2.44."""
    return config.build_algo() if hasattr(config, "build_algo") else config.build()


def keep_env_runners(config: AlgorithmConfig) -> None:
    """Lets an offline algorithm have env runners, if only local ones.

    Later releases make none for a config that is not online, and `Algorithm.from_checkpoint` then
    dies of sending them the weights (`restore_from_path` of Ray 2.60).
    """
    if not getattr(config, "_is_online", True):
        config._is_online = True


def without_logger(config: AlgorithmConfig, logdir: str) -> None:
    """Keeps an algorithm from writing its results to files, where its owner does it.

    In Ray 2.40, whatever is trained logs by itself, with loggers that warn that they are old.
    """
    from ray.rllib.algorithms.algorithm import Algorithm

    if "logger_creator" in inspect.signature(Algorithm.__init__).parameters:
        config.debugging(logger_creator=partial(_no_logger, logdir))


def trainable_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """What of the given arguments a `Trainable` takes, and what keeps it from logging by itself."""
    from ray.tune import Trainable

    accepted = inspect.signature(Trainable.__init__).parameters
    if "logger_creator" in accepted and given.get("storage") is None:
        given = {"logger_creator": partial(_no_logger, None), **given}
    return {name: value for name, value in given.items() if name in accepted}


def _no_logger(logdir: str | None, config: Any) -> Any:
    from ray.tune.logger import NoopLogger

    if logdir is None:
        results = Path("~/ray_results").expanduser()
        results.mkdir(parents=True, exist_ok=True)
        now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        logdir = tempfile.mkdtemp(prefix=now, dir=results)
    return NoopLogger(config, logdir)


def local_learner(algorithm: Algorithm) -> Any:
    """The learner of an algorithm without remote ones."""
    return algorithm.learner_group._learner  # no public name in any supported Ray


def save(algorithm: Algorithm, target: Path, *, state_format: str) -> None:
    """Saves an algorithm's Checkpointable tree; `use_msgpack` came with Ray 2.44.

    Raises:
        RayNotSupportedError: msgpack was asked of an older Ray.
    """
    if state_format == "pkl":
        algorithm.save_to_path(str(target.absolute()))
        return
    if installed() < Version("2.44"):
        raise RayNotSupportedError(
            f"Ray {installed()} writes its state as pickle only.",
            fix="Use --state-format pkl, or Ray 2.44 and later.",
        )
    with unpatched_msgpack():
        algorithm.save_to_path(str(target.absolute()), use_msgpack=True)


@contextmanager
def unpatched_msgpack() -> Iterator[None]:
    """Takes back what Ray does to msgpack in the block.

    `try_import_msgpack` patches msgpack for the whole process, and with it the serializer that
    Ray sends arrays to its actors with: they arrive as raw dicts from then on.
    """
    import msgpack

    names = ["Packer", "Unpacker", "pack", "packb", "unpack", "unpackb"]
    names += ["load", "loads", "dump", "dumps"]
    originals = {name: getattr(msgpack, name) for name in names}
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(msgpack, name, original)


def set_lifetime_counters(
    algorithm: Algorithm, *, iteration: int, env_steps: int, episodes: int
) -> None:
    """Makes an algorithm go on counting where another one stopped.

    Lifetime counters were sums that are not cleared (2.40). Later releases have a reduction of
    their own for them, and a logger that refuses to mix what it counted with what it was sent;
    so the numbers are sent as an env runner would.
    """
    from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

    algorithm._iteration = iteration  # what `Algorithm.set_state` sets, too
    names = ("num_env_steps_sampled_lifetime", "num_episodes_lifetime")
    values = {name: v for name, v in zip(names, (env_steps, episodes), strict=True) if v}
    if not hasattr(algorithm.metrics, "aggregate"):
        for name, value in values.items():
            algorithm.metrics.log_value(
                ("env_runners", name), value, reduce="sum", clear_on_reduce=False
            )
        return
    runner = MetricsLogger()
    for name, value in values.items():
        runner.log_value(name, value, reduce="lifetime_sum")
    if values:
        algorithm.metrics.aggregate([runner.reduce(compile=False)], key="env_runners")


def set_steps_of_env_runner(algorithm: Algorithm, steps: int, env_runners: int) -> None:
    """Tells an env runner how many steps all of them have sampled; epsilon follows from that.

    A runner of Ray 2.40 counts its own steps, and multiplies them by the number of runners. What
    it has counted when it is restored is added to what the algorithm has counted, so there only
    one of the two may know; with remote runners, that Ray counts all steps twice after any restore.
    """
    runner = algorithm.env_runner
    if not hasattr(runner, "num_env_steps_sampled_lifetime"):
        if env_runners == 0:
            algorithm.metrics.set_value(("env_runners", "num_env_steps_sampled_lifetime"), 0)
        steps //= max(env_runners, 1)
    runner.set_state({"num_env_steps_sampled_lifetime": steps})


def whole_model_config(config: AlgorithmConfig, told: dict[str, Any]) -> dict[str, Any]:
    """What a module's spec has to say for the module to get an algorithm's own settings, too.

    Env runners of Ray 2.40 take a spec's model config as it stands; Ray 2.60 adds the algorithm's
    settings (DQN's epsilon, …). In between they are added here, which is right in any release.
    """
    if _at_least("2.60"):
        return told
    whole: dict[str, Any] = config.model_config | told
    return whole


def mark_steps_as_counted(algorithm: Algorithm) -> None:
    """Keeps a restored algorithm from counting again what it has counted already.

    Env runners of Ray 2.40 send what their lifetime counter has grown by. A restore sets the
    counter, and not what they have sent before, so that all of it would be sent again. Where the
    algorithm knows of no steps (`set_steps_of_env_runner`), that is meant.
    """
    if hasattr(algorithm.metrics, "aggregate") or algorithm.learner_group is None:
        return
    if algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"), default=0):
        foreach_env_runner(algorithm.env_runner_group, _mark_steps)


def _mark_steps(env_runner: Any) -> None:
    stats = env_runner.metrics.stats.get("num_env_steps_sampled_lifetime")
    if stats is not None:
        stats._hist = (stats.peek(), 0)


def running_stat_state(count: int, mean: Any, m2: Any) -> dict[str, Any]:
    """The state of a running statistic as the connector takes it.

    The sum of squared deviations was called `std_array` until a later release gave it its name
    (`sum_sq_diff_array`), and added what was seen since the last synchronisation: nothing here.

    Args:
        count: How many observations were seen.
        mean: Their mean.
        m2: The sum of squared deviations from it.
    """
    from ray.rllib.utils.filter import RunningStat

    stat = RunningStat(mean.shape)
    stat.num_pushes = count
    stat.mean_array[...] = mean
    sums = "sum_sq_diff_array" if hasattr(stat, "sum_sq_diff_array") else "std_array"
    getattr(stat, sums)[...] = m2
    state: dict[str, Any] = stat.to_state()
    return state


#: What BC's default module called its encoder and its head, newest first.
BC_MODULE_NAMES = (("_encoder", "_pi_head"), ("encoder", "pi"))


def bc_module_names() -> tuple[str, str]:
    """What the installed BC's default module calls its encoder and its head.

    They were renamed with the module's file; a look for it needs no import of Ray.
    """
    try:
        ray = metadata.distribution("ray")
    except metadata.PackageNotFoundError:
        return BC_MODULE_NAMES[0]
    file = "ray/rllib/algorithms/bc/torch/default_bc_torch_rl_module.py"
    return BC_MODULE_NAMES[0 if Path(str(ray.locate_file(file))).exists() else 1]


# Arguments of `AlgorithmConfig` that came after the oldest supported Ray, by release.
_SETTINGS_SINCE = {
    "2.44": (
        "env_runners.gym_env_vectorize_mode env_runners.episodes_to_numpy "
        "learners.num_aggregator_actors_per_learner "
        "learners.max_requests_in_flight_per_aggregator_actor training.burn_in_len "
        "offline_data.offline_data_class offline_data.output_write_remaining_data "
        "callbacks.on_algorithm_init callbacks.on_env_runners_recreated "
        "callbacks.on_checkpoint_loaded callbacks.on_environment_created "
        "callbacks.on_episode_created callbacks.on_episode_start callbacks.on_episode_step "
        "callbacks.on_episode_end callbacks.on_evaluate_start callbacks.on_evaluate_end "
        "callbacks.on_sample_end callbacks.on_train_result"
    ),
    "2.48": (
        "env_runners.create_local_env_runner env_runners.merge_env_runner_states "
        "env_runners.broadcast_env_runner_states offline_data.ignore_final_observation "
        "evaluation.evaluation_auto_duration_min_env_steps_per_sample "
        "evaluation.evaluation_auto_duration_max_env_steps_per_sample "
        "evaluation.offline_evaluation_interval evaluation.num_offline_eval_runners "
        "evaluation.offline_evaluation_type evaluation.offline_eval_runner_class "
        "evaluation.offline_loss_for_module_fn evaluation.offline_evaluation_timeout_s "
        "evaluation.num_cpus_per_offline_eval_runner evaluation.num_gpus_per_offline_eval_runner "
        "evaluation.custom_resources_per_offline_eval_runner "
        "evaluation.restart_failed_offline_eval_runners "
        "evaluation.ignore_offline_eval_runner_failures "
        "evaluation.max_num_offline_eval_runner_restarts "
        "evaluation.offline_eval_runner_restore_timeout_s "
        "evaluation.max_requests_in_flight_per_offline_eval_runner "
        "evaluation.validate_offline_eval_runners_after_construction "
        "evaluation.offline_eval_runner_health_probe_timeout_s "
        "evaluation.offline_eval_rl_module_inference_only "
        "evaluation.broadcast_offline_eval_runner_states "
        "evaluation.offline_eval_batch_size_per_runner "
        "evaluation.dataset_num_iters_per_offline_eval_runner "
        "callbacks.on_offline_eval_runners_recreated callbacks.on_evaluate_offline_start "
        "callbacks.on_evaluate_offline_end"
    ),
    "2.55": (
        "offline_data.prelearner_use_recorded_module_states reporting.custom_stats_cls_lookup "
        "training.use_circular_buffer training.simple_queue_size"
    ),
    "2.58": (
        "env_runners.use_env_runner_state_server "
        "env_runners.env_runner_state_server_max_concurrency "
        "resources.custom_resources_for_main_process learners.custom_resources_per_learner "
        "evaluation.evaluation_unhealthy_workers_timeout_s "
        "evaluation.evaluation_error_after_n_consecutive_skips"
    ),
}
_SETTING_SINCE = {name: since for since, names in _SETTINGS_SINCE.items() for name in names.split()}


def has_setting(setting: str) -> bool:
    """Whether the installed Ray's `AlgorithmConfig` takes a setting (`method.argument`)."""
    since = _SETTING_SINCE.get(".".join(setting.split(".")[:2]))
    return since is None or _at_least(since)


def vectorizes_multi_agent_envs() -> bool:
    """Whether an env runner steps several multi-agent environments; Ray 2.40 refuses to."""
    return _at_least("2.44")


def _at_least(release: str) -> bool:
    """Whether the installed Ray is that new; without an installed Ray, the newest is meant."""
    try:
        return installed() >= Version(release)
    except RayNotSupportedError:
        return True


def resets_at_the_next_step() -> dict[str, Any]:
    """The metadata of a vector environment that resets one step after an episode's end.

    The gymnasium of later releases asks for it; that of Ray 2.40 (1.0) knows no other way.
    """
    from gymnasium import vector

    mode = getattr(vector, "AutoresetMode", None)
    return {} if mode is None else {"autoreset_mode": mode.NEXT_STEP}


def old_replay_buffer(name: str) -> type:
    """A replay buffer class of the old API stack that DQN can be built with.

    DQN's `validate()` puts the class where its name was, and later releases then ask whether
    "EpisodeReplayBuffer" is *in* it, as if it still were the name; so the class has to answer.
    """
    from ray.rllib.utils import replay_buffers

    base: type = getattr(replay_buffers, name)

    def contains(cls: type, part: str) -> bool:
        return part in cls.__name__

    meta = type("Named", (type(base),), {"__contains__": contains})
    made: type = meta(name, (base,), {"__module__": base.__module__})
    return made


def has_old_api_stack() -> bool:
    """Whether `api_stack(enable_rl_module_and_learner=False)` still runs.

    All supported releases have it (`ray/rllib/policy`, `ray/rllib/models`).
    """
    return True


def callback_class() -> Any:
    """The base of callbacks: `RLlibCallback`, which was `DefaultCallbacks` until Ray 2.43."""
    try:
        from ray.rllib.callbacks.callbacks import RLlibCallback
    except ImportError:
        from ray.rllib.algorithms.callbacks import DefaultCallbacks as RLlibCallback
    return RLlibCallback


def callbacks_of(runner_or_algorithm: Any) -> list[Any]:
    """The callback objects of an env runner or algorithm; one object until Ray 2.43."""
    held = getattr(runner_or_algorithm, "_callbacks", None) or runner_or_algorithm.callbacks
    return held if isinstance(held, list) else [held]


def to_numpy(episode: Any) -> Any:
    """Turns the lists in an episode, or in one of its buffers, into arrays, in place.

    The method was called `finalize` until Ray 2.43.
    """
    (getattr(episode, "to_numpy", None) or episode.finalize)()
    return episode


def log_item(metrics_logger: Any, key: str, item: Any) -> None:
    """Logs an object that reaches the result in a list, unreduced and once.

    That was `reduce=None`; the releases with a class per reduction call it `item_series`.
    """
    from ray.rllib.utils.metrics import metrics_logger as module

    if hasattr(module, "DEFAULT_STATS_CLS_LOOKUP"):
        metrics_logger.log_value(key, item, reduce="item_series")
    else:
        metrics_logger.log_value(key, item, reduce=None, clear_on_reduce=True)


def sub_environments(env: Any) -> list[Any]:
    """The environments in a runner's `env`; Ray 2.40 has one multi-agent environment, bare."""
    return list(env.envs) if hasattr(env, "envs") else [env] if env is not None else []


def seed_env_runner(env_runner: Any, env: Any) -> None:
    """Gives the config's seed to a runner's process and environments, which Ray 2.40 did not.

    Later runners do it themselves, at their first reset. Environments go on with the random
    numbers of this reset at those that follow.
    """
    seed = env_runner.config.seed
    if seed is None or hasattr(env_runner, "_seed"):
        return
    from ray.rllib.utils.debug import update_global_seed_if_necessary

    # The same numbers as later: a runner's own index, and evaluation far away.
    seed = int(seed) + (env_runner.worker_index or 0) + int(env_runner.config.in_evaluation) * 10**6
    update_global_seed_if_necessary(env_runner.config.framework_str, seed)
    env.reset(seed=seed)


def log_sampler_times(env_runner: Any, metrics_logger: Any) -> None:
    """Logs how long steps, inference and connectors take, by the names of later releases.

    Ray 2.40 timed single connectors only, and told nobody.
    """
    if not hasattr(env_runner._env_to_module, "timers") or env_runner.module is None:
        return
    for pipeline, name in (
        (env_runner._env_to_module, "env_to_module_connector"),
        (env_runner._module_to_env, "module_to_env_connector"),
    ):
        mean = sum(timer.mean for timer in pipeline.timers.values())
        metrics_logger.log_value((name, "connector_pipeline_timer"), mean, window=10)
    for owner, methods, name in (
        (env_runner, ("_try_env_step",), "env_step_timer"),
        (env_runner.module, _FORWARD, "rlmodule_inference_timer"),
    ):
        timer = vars(owner).get("_legacy_timer")
        if timer is None:  # the first sample, which was not timed
            owner.__dict__["_legacy_timer"] = _time_methods(owner, methods)
        elif timer.count:
            metrics_logger.log_value(name, timer.mean, window=10)


_FORWARD = ("forward_exploration", "forward_inference")


def untimed(module: Any) -> Any:
    """The module without what `log_sampler_times` has put into it."""
    module = copy.copy(module)
    for name in ("_legacy_timer", *_FORWARD):
        module.__dict__.pop(name, None)
    return module


def _time_methods(owner: Any, methods: tuple[str, ...]) -> Any:
    from ray.util.timer import _Timer

    timer = _Timer(window_size=100)

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with timer:
                return method(*args, **kwargs)

        return call

    for name in methods:
        owner.__dict__[name] = timed(getattr(owner, name))
    return timer


def tune_checkpoint_config() -> Any:
    """An empty `CheckpointConfig` for Tune; in Ray 2.40 it is that of `ray.train`."""
    from ray import train, tune

    return (tune if hasattr(tune, "CheckpointConfig") else train).CheckpointConfig()


def tune_report(metrics: dict[str, Any], *, checkpoint: Any = None) -> None:
    """Reports to Tune from a function; in Ray 2.40 it is done as in `ray.train`."""
    from ray import train, tune

    (tune if hasattr(tune, "report") else train).report(metrics, checkpoint=checkpoint)


def network_forward(module: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What computes the numbers that a module chooses actions by, without choosing.

    Modules of DQN give only the action by themselves; their Q-values have a public name since a
    release after 2.40.
    """
    if hasattr(module, "af"):
        found = module.compute_q_values if hasattr(module, "compute_q_values") else module._qf
    else:
        found = module._forward_inference
    return found  # type: ignore[no-any-return]  # Ray has no types


def foreach_env_runner(group: Any, function: Callable[[Any], Any], **kwargs: Any) -> list[Any]:
    """Calls `function` in all env runners; the method was `foreach_worker` until Ray 2.43."""
    method = getattr(group, "foreach_env_runner", None) or group.foreach_worker
    return list(method(function, **kwargs))


def remote_env_runners(group: Any) -> list[Any]:
    """The actors of a group's remote env runners; no supported Ray has a public name for them."""
    return list(group._worker_manager.actors().values())


def is_multi_agent(config: AlgorithmConfig) -> bool:
    """Whether a config is for many agents; a method until Ray 2.43, a property since."""
    answer = config.is_multi_agent
    return bool(answer() if callable(answer) else answer)


def send_weights(algorithm: Algorithm, group: Any) -> None:
    """Sends the learners' weights to all env runners of a group, whatever they have.

    Every supported Ray numbers the weights, and a runner ignores those with a lower number than its
    own; after a restore, those are the right ones.
    """
    if algorithm.learner_group is None:  # the old API stack trains in the local runner
        group.sync_weights()
        return
    foreach_env_runner(group, _forget_number_of_weights)
    group.sync_weights(from_worker_or_learner_group=algorithm.learner_group, inference_only=True)


def _forget_number_of_weights(env_runner: Any) -> None:
    env_runner._weights_seq_no = 0


def torch_distributions() -> Any:
    """The module of torch's action distributions; it was below `ray.rllib.models` in Ray 2.40."""
    try:
        from ray.rllib.core.distribution.torch import torch_distribution
    except ImportError:
        from ray.rllib.models.torch import torch_distributions as torch_distribution
    return torch_distribution


def soft_actor_critic_modules() -> tuple[Any, Any]:
    """The default modules of SAC and CQL; both had no `Default` in their names in Ray 2.40."""
    try:
        from ray.rllib.algorithms.cql.torch.default_cql_torch_rl_module import (
            DefaultCQLTorchRLModule as CQLModule,
        )
        from ray.rllib.algorithms.sac.torch.default_sac_torch_rl_module import (
            DefaultSACTorchRLModule as SACModule,
        )
    except ImportError:
        from ray.rllib.algorithms.cql.torch.cql_torch_rl_module import CQLTorchRLModule as CQLModule
        from ray.rllib.algorithms.sac.torch.sac_torch_rl_module import SACTorchRLModule as SACModule
    return SACModule, CQLModule


def trains_discrete_sac() -> bool:
    """Whether today's SAC learns discrete actions; Ray 2.40 does not."""
    module, _ = soft_actor_critic_modules()
    return hasattr(module, "_forward_train_discrete")


def dqn_module() -> Any:
    """The default module of DQN; it was called after Rainbow in Ray 2.40."""
    try:
        from ray.rllib.algorithms.dqn.torch import default_dqn_torch_rl_module as module
    except ImportError:
        from ray.rllib.algorithms.dqn.torch import dqn_rainbow_torch_rl_module as module

        return module.DQNRainbowTorchRLModule
    return module.DefaultDQNTorchRLModule


def q_values(module: Any, batch: Mapping[str, Any]) -> Any:
    """The Q-values of a default DQN module `[B, actions]`; the method was `_qf` in Ray 2.40."""
    compute = getattr(module, "compute_q_values", None) or module._qf
    return compute(batch)["qf_preds"]


#: Replay buffers whose samples have no weights in Ray 2.40, and those that can take their place.
_UNWEIGHTED = {
    "EpisodeReplayBuffer": "PrioritizedEpisodeReplayBuffer",
    "MultiAgentEpisodeReplayBuffer": "MultiAgentPrioritizedEpisodeReplayBuffer",
}


def weighted_buffer(kind: str) -> str | None:
    """The replay buffer to take for a plain one that gives no weights; None: it gives them.

    Learners ask for weights. In Ray 2.40 only the prioritized buffers give them; without any
    prioritization (`alpha=0`) they sample as evenly, and all weights are 1. Since 2.44 all do.
    """
    return None if _at_least("2.44") else _UNWEIGHTED.get(kind)


def weigh_replayed(config: Any) -> None:
    """Puts a buffer that gives weights into the place of a default that gives none."""
    buffer = getattr(config, "replay_buffer_config", None) or {}
    weighted = weighted_buffer(str(buffer.get("type")))
    if weighted is not None:
        config.replay_buffer_config = {**buffer, "type": weighted, "alpha": 0.0, "beta": 0.0}
