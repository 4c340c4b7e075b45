"""Algorithms: how they are built, loaded and stopped."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rllib_compat.neutral.errors import CompatError, NotConvertibleError
from rllib_compat.ray_versions import old_stack, renames
from rllib_compat.ray_versions.checkpoints import path_for_ray
from rllib_compat.ray_versions.configs import learn_in_this_process
from rllib_compat.ray_versions.env_runners import foreach_env_runner
from rllib_compat.ray_versions.metrics import name_agents
from rllib_compat.ray_versions.sampling import tolerates_failures, unmask_zero_q_values
from rllib_compat.ray_versions.startup import quiet_logs
from rllib_compat.ray_versions.types import Algorithm, AlgorithmConfig


def build_algorithm(config: AlgorithmConfig) -> Algorithm:
    """Builds an algorithm.

    Where failures of env runners are ignored or mended, Ray hides why none of them could be made,
    and fails to take the first one's spaces. Built without that, it raises the reason.
    """
    try:
        return _savable(renames.method(config, "build_algo")())
    except IndexError:
        if not tolerates_failures(config):
            raise
        strict = config.copy(copy_frozen=False)
        strict.fault_tolerance(ignore_env_runner_failures=False, restart_failed_env_runners=False)
        stop_algorithm(renames.method(strict, "build_algo")())
        raise


def resource_request(config: AlgorithmConfig) -> Any:
    """The bundles that an algorithm of a config asks for, its own process first.

    Ray writes the config into a default one of the class, argument by argument, which refuses
    attributes that no argument sets; here the config is that default.
    """
    own = staticmethod(lambda: config.copy(copy_frozen=False))
    asking: Any = type("Asking", (config.algo_class,), {"get_default_config": own})
    return asking.default_resource_request({})


@contextmanager
def small_algorithm(config: AlgorithmConfig) -> Iterator[Algorithm]:
    """An algorithm of a config as small as can be: nothing remote, no GPUs, no evaluation.

    Raises:
        NotConvertibleError: Ray makes none of this config.
    """
    small = config.copy(copy_frozen=False)
    small.env_runners(num_env_runners=0, num_envs_per_env_runner=1, create_env_on_local_worker=True)
    learn_in_this_process(small)
    small.evaluation(evaluation_interval=None, evaluation_num_env_runners=0)
    small.offline_data(input_="sampler")  # nothing is read; what is saved is the full config
    small.reporting(keep_per_episode_custom_metrics=False)
    # Nothing is drawn that stays; a seed makes torch load its compiler. Ray stops measuring the
    # machine only after most of a second.
    small.debugging(seed=None, log_sys_usage=False)
    try:
        algorithm = build_algorithm(small)
    except CompatError:
        raise
    except Exception as error:  # whatever Ray, gymnasium or an environment says of the config
        raise NotConvertibleError(
            f"Ray cannot build the algorithm: {type(error).__name__}: {error}"[:1000],
            fix="Change the keys that the error names, or pass another --env.",
        ) from error
    try:
        yield algorithm
    finally:
        stop_algorithm(algorithm)


def _savable(algorithm: Algorithm) -> Algorithm:
    """Repairs what makes a Ray fail when an algorithm is saved."""
    if (buffer := algorithm.local_replay_buffer) is not None:
        name_agents(buffer)
    return _with_connectors(algorithm)


def _with_connectors(algorithm: Algorithm) -> Algorithm:
    """Gives connectors to an algorithm that has no env runner of its own.

    Ray 2.46 and 2.47 make none for one that learns from recordings and evaluates nowhere, and fail
    of saving their state.
    """
    made: Any = algorithm
    lacks = getattr(made, "env_to_module_connector", made) is None
    config = algorithm.config
    spaces = config.observation_space, config.action_space
    if lacks and algorithm.env_runner_group is None and None not in spaces:
        from ray.rllib.env import INPUT_ENV_SINGLE_SPACES

        known = {INPUT_ENV_SINGLE_SPACES: spaces}
        made.env_to_module_connector = config.build_env_to_module_connector(spaces=known)
        made.module_to_env_connector = config.build_module_to_env_connector(spaces=known)
    return algorithm


def load_algorithm(tree: Path) -> Algorithm:
    """Loads a Checkpointable tree that this process has written itself: Ray unpickles it.

    Modules of DQN explore actions whose Q-value is zero, as those of trainers do.
    """
    from ray.rllib.algorithms.algorithm import Algorithm

    with quiet_logs(), restores_offline(), path_for_ray(tree) as path:
        algorithm = _savable(Algorithm.from_checkpoint(path))
    if algorithm.config.enable_env_runner_and_connector_v2:
        for group in (algorithm.env_runner_group, algorithm.eval_env_runner_group):
            if group is not None:
                foreach_env_runner(group, unmask_zero_q_values)
    return algorithm


def copy_state(algorithm: Algorithm) -> Any:
    """All that a restore changes in an algorithm, of either API stack; it shares no memory."""
    if algorithm.config.enable_rl_module_and_learner:
        state = copy.deepcopy(algorithm.get_state())
        # A learner ignores weights whose number is not above its own; without one it takes them.
        state["learner_group"]["learner"].pop("weights_seq_no", None)
        return state
    return old_stack.copy_state(algorithm)


def restore_state(algorithm: Algorithm, state: Any) -> None:
    """Gives an algorithm what `copy_state` has copied."""
    if algorithm.config.enable_rl_module_and_learner:
        with restores_offline():
            # What runners have counted is taken from the metrics, which Ray sets last.
            algorithm.set_state({"metrics_logger": state["metrics_logger"]})
            algorithm.set_state(state)
    else:
        algorithm.__setstate__(state)


@contextmanager
def restores_offline() -> Iterator[None]:
    """Lets an algorithm that learns from recordings be restored on every release.

    Ray 2.41 – 2.47 give it no env runners, and fail to send them their state and the weights.
    """
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.core import COMPONENT_ENV_RUNNER
    from ray.rllib.utils.checkpoints import Checkpointable

    whole, whole_state = Algorithm.restore_from_path, Algorithm.set_state

    def samples(algorithm: Algorithm) -> bool:
        return getattr(algorithm, "env_runner_group", None) is not None

    def restore(algorithm: Algorithm, *args: object, **kwargs: object) -> None:
        last = whole if samples(algorithm) else Checkpointable.restore_from_path
        last(algorithm, *args, **kwargs)

    def set_state(algorithm: Algorithm, state: dict[str, Any]) -> None:
        if not samples(algorithm):
            state = {name: part for name, part in state.items() if name != COMPONENT_ENV_RUNNER}
        whole_state(algorithm, state)

    Algorithm.restore_from_path, Algorithm.set_state = restore, set_state
    try:
        yield
    finally:
        Algorithm.restore_from_path, Algorithm.set_state = whole, whole_state


def stop_algorithm(algorithm: Algorithm) -> None:
    """Stops an algorithm, its learners, and the thread that IMPALA and APPO learn in.

    Ray 2.40 leaves learners that are actors to the garbage collector: they keep CPUs and GPUs.
    Rays before 2.56 leave the thread running: it looks for a batch without end, and keeps a core
    busy. Where nothing can ask it to stop (before 2.54), what it looks into next ends it.
    """
    learners: Any = algorithm.learner_group
    learner = getattr(learners, "_learner", None)
    algorithm.stop()
    if learners is not None and not learners._is_shut_down:
        learners.shutdown()
    thread = getattr(learner, "_learner_thread", None)
    if thread is None or not thread.is_alive():
        return
    if hasattr(thread, "request_stop"):
        thread.request_stop()
        return
    thread.stopped = True
    batches, thread._in_queue = thread._in_queue, _StopSignal()  # IMPALA's asks for it each time
    if hasattr(batches, "_lock"):  # APPO's waits inside of it
        batches._lock = _StopSignal()
    if hasattr(batches, "_num_valid_batches"):  # until 2.41 it takes no lock while there is none
        batches._num_valid_batches = 1


class _StopSignal:
    """A queue or a lock that ends the thread that wants it."""

    def __len__(self) -> int:
        raise SystemExit

    def __enter__(self) -> None:
        raise SystemExit

    def __exit__(self, *error: object) -> None:
        """Nothing was taken."""
