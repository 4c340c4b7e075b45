"""Env runners and groups of them: their environments, seeds, actors and weights."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from rllib_compat.ray_versions.tensors import weights_of_runner

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm


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


def foreach_env_runner(group: Any, function: Callable[[Any], Any], **kwargs: Any) -> list[Any]:
    """Calls `function` in all env runners; the method was `foreach_worker` until Ray 2.40."""
    method = getattr(group, "foreach_env_runner", None) or group.foreach_worker
    return list(method(function, **kwargs))


def remote_env_runners(group: Any) -> list[Any]:
    """The actors of a group's remote env runners; no supported Ray has a public name for them."""
    return list(group._worker_manager.actors().values())


def numbered_env_runners(group: Any) -> list[tuple[int, Any]]:
    """The env runners of a group that sample, by their indices: actors, or the local one."""
    actors = sorted(group._worker_manager.actors().items())
    if actors:
        return actors
    local = getattr(group, "local_env_runner", None) or group.local_worker()
    return [] if local is None else [(0, local)]


def environments_of(env_runner: Any) -> list[Any]:
    """The environments of an env runner, of either API stack."""
    if hasattr(env_runner, "async_env"):  # the old API stack
        base = env_runner.async_env
        return [] if base is None else list(base.get_sub_environments() or [base])
    return sub_environments(getattr(env_runner.env, "unwrapped", env_runner.env))


def send_weights(algorithm: Algorithm, group: Any) -> None:
    """Sends the learners' weights to all env runners of a group, whatever they have.

    Every supported Ray numbers the weights, and a runner ignores those with a lower number than its
    own; after a restore, those are the right ones.
    """
    if algorithm.learner_group is None:  # the old API stack trains in the local runner
        group.sync_weights()
        return
    foreach_env_runner(group, _forget_number_of_weights)
    if has_only_a_local_one(group):
        copy_weights(algorithm.learner_group, group)
        return
    group.sync_weights(from_worker_or_learner_group=algorithm.learner_group, inference_only=True)


def has_only_a_local_one(group: Any) -> bool:
    """Whether weights go to the env runner of this process alone, and as Ray sends them.

    A league has put a method in the place of Ray's, which keeps track of what is frozen.
    """
    return "sync_weights" not in vars(group) and is_in_this_process(group)


def is_in_this_process(group: Any) -> bool:
    """Whether a group's env runner is that of this process, and no other."""
    return not group.num_remote_workers() and group.local_env_runner is not None


def copy_weights(learners: Any, group: Any, modules: Collection[str] | None = None) -> None:
    """Gives the learners' weights to the env runner of this process.

    Ray puts them into the object store then, too, where nobody else reads them.

    Args:
        learners: The learner group.
        group: The group of env runners.
        modules: The ids of the modules; None for all.
    """
    runner = group.local_env_runner
    weights = None
    if learners.is_local:
        weights = weights_of_runner(runner, learners._learner, modules)
    if weights is None:
        whole = "learner/rl_module"
        parts = whole if modules is None else [f"{whole}/{module}" for module in modules]
        state = learners.get_state(components=parts, inference_only=True)
        runner.set_state(state["learner"])
        return
    number = learners._learner._weights_seq_no
    if number == 0 or runner._weights_seq_no < number:  # what `set_state` asks, too
        weights.copy()
        runner._weights_seq_no = number or runner._weights_seq_no


def _forget_number_of_weights(env_runner: Any) -> None:
    env_runner._weights_seq_no = 0


def reset_at_the_next_sample(env_runner: Any) -> None:
    """Lets a runner begin new episodes: somebody has stepped its environments by themselves."""
    env_runner._needs_initial_reset = True


def count_sampled(env_runner: Any, steps: int, episodes: int) -> Any:
    """Counts what was sampled without the runner's own `sample`.

    Returns:
        What the runner tells, as after a sample.
    """
    env_runner._increase_sampled_metrics(steps, episodes)
    return env_runner.get_metrics()


def go_on_exploring(env_runner: Any, episodes: list[Any]) -> None:
    """Lets schedules of exploration go on from one sample to the next.

    Runners are told at the end of an iteration how many steps all of them have sampled. Until
    Ray 2.53 they counted their own in between; since then each sample would begin where the
    iteration did.
    """
    if hasattr(env_runner, "num_env_steps_sampled_lifetime"):
        steps = sum(episode.env_steps() for episode in episodes)
        env_runner.num_env_steps_sampled_lifetime += steps * (
            env_runner.config.num_env_runners or 1
        )


def resets_at_the_next_step() -> dict[str, Any]:
    """The metadata of a vector environment that resets one step after an episode's end.

    The gymnasium of later releases asks for it; that of Ray 2.40 (1.0) knows no other way.
    """
    from gymnasium import vector

    mode = getattr(vector, "AutoresetMode", None)
    return {} if mode is None else {"autoreset_mode": mode.NEXT_STEP}


def earlier_chunks(env_runner: Any, episode_id: Any) -> list[Any]:
    """The chunks of an ongoing episode that earlier samples of a runner have returned.

    No supported Ray has a public name for them; `get` keeps the default dict from growing.
    """
    return list(env_runner._ongoing_episodes_for_metrics.get(episode_id, ()))
