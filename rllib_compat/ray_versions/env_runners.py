"""Env runners and groups of them: seeds, actors, weights, and requests that are not waited for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rllib_compat.ray_versions import renames
from rllib_compat.ray_versions.tensors import weights_of_runner
from rllib_compat.ray_versions.types import Algorithm, EnvRunner, EnvRunnerGroup, LearnerGroup


def seed_env_runner(env_runner: EnvRunner, env: Any) -> None:
    """Gives the config's seed to a runner's process and environments, which Ray 2.40 did not.

    Later runners do it themselves, at their first reset. Environments continue with the random
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


def foreach_env_runner(
    group: EnvRunnerGroup, function: Callable[[Any], Any], **kwargs: object
) -> list[Any]:
    """Calls `function` in all env runners."""
    return list(renames.method(group, "foreach_env_runner")(function, **kwargs))


def remote_env_runners(group: EnvRunnerGroup) -> list[Any]:
    """The actors of a group's remote env runners; no supported Ray has a public name for them."""
    return list(group._worker_manager.actors().values())


def replace_env_runners(group: EnvRunnerGroup, actors: list[Any]) -> None:
    """Makes these actors the remote env runners of a group; others that it has are ended."""
    manager = group._worker_manager
    gone = {index: actor for index, actor in manager.actors().items() if actor not in actors}
    manager._actors = gone  # `clear` ends them
    manager.clear()
    manager.add_actors(actors)


def remove_unhealthy_env_runners(group: EnvRunnerGroup) -> None:
    """Takes those out of a group that do not answer.

    Raises:
        RuntimeError: None of them does.
    """
    renames.method(group, "probe_unhealthy_env_runners")()
    actors = group._worker_manager.actors()
    healthy = [actors[index] for index in healthy_indices(group)]
    if actors and not healthy:
        raise RuntimeError(f"None of {len(actors)} workers answers.")
    if len(healthy) < len(actors):
        replace_env_runners(group, healthy)


def numbered_env_runners(group: EnvRunnerGroup) -> list[tuple[int, Any]]:
    """The env runners of a group that sample, by their indices: actors, or the local one."""
    actors = sorted(group._worker_manager.actors().items())
    if actors:
        return actors
    local = group.local_env_runner
    return [] if local is None else [(0, local)]


def send_weights(algorithm: Algorithm, group: EnvRunnerGroup) -> None:
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


def has_only_a_local_one(group: EnvRunnerGroup) -> bool:
    """Whether weights go to the env runner of this process alone, and as Ray sends them.

    A league has put a method in the place of Ray's, which keeps track of what is frozen.
    """
    return "sync_weights" not in vars(group) and is_in_this_process(group)


def is_in_this_process(group: EnvRunnerGroup) -> bool:
    """Whether a group's env runner is that of this process, and no other."""
    return not group.num_remote_workers() and group.local_env_runner is not None


def copy_weights(
    learners: LearnerGroup, group: EnvRunnerGroup, modules: Collection[str] | None = None
) -> None:
    """Gives the learners' weights, of all modules (None) or some, to this process' env runner.

    Ray puts them into the object store then, too, where nothing else reads them.
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


def number_of_weights(env_runner: EnvRunner) -> int:
    """The number of the weights that a runner has."""
    return int(env_runner._weights_seq_no)


def _forget_number_of_weights(env_runner: EnvRunner) -> None:
    env_runner._weights_seq_no = 0


def reset_at_the_next_sample(env_runner: EnvRunner) -> None:
    """Lets a runner begin new episodes: somebody has stepped its environments by themselves."""
    env_runner._needs_initial_reset = True


def count_sampled(env_runner: EnvRunner, steps: int, episodes: int) -> Any:
    """Counts what was sampled without the runner's own `sample`; returns the metrics after it."""
    env_runner._increase_sampled_metrics(steps, episodes)
    return env_runner.get_metrics()


def log_done_episodes(env_runner: Any) -> None:
    """Lets a runner measure the episodes that are over, without reporting it yet.

    A learner in its process adds a step to each, and changes its id.
    """
    if not getattr(env_runner, "_done_episodes_for_metrics", None):
        return
    own = vars(env_runner.metrics)
    own["reduce"] = lambda: None
    try:
        env_runner.get_metrics()
    finally:
        del own["reduce"]


@contextmanager
def not_counted(env_runner: EnvRunner) -> Iterator[None]:
    """Lets a runner sample for somebody who does not train.

    What it counts between two train batches is taken for a part of the next one, which would then
    be shorter.
    """
    own = vars(env_runner)
    own["_increase_sampled_metrics"] = lambda num_steps, *_: num_steps
    try:
        yield
    finally:
        del own["_increase_sampled_metrics"]


def advance_exploration_timestep(env_runner: EnvRunner, episodes: list[Any]) -> None:
    """Lets schedules of exploration continue from one sample to the next.

    Runners get to know at the end of an iteration how many steps all of them have sampled. Until
    Ray 2.53 they counted their own in between; since then each sample would begin where the
    iteration did.
    """
    if hasattr(env_runner, "num_env_steps_sampled_lifetime"):
        steps = sum(episode.env_steps() for episode in episodes)
        env_runner.num_env_steps_sampled_lifetime += steps * (
            env_runner.config.num_env_runners or 1
        )


def earlier_chunks(env_runner: EnvRunner, episode_id: object) -> list[Any]:
    """The chunks of an ongoing episode that earlier samples of a runner have returned.

    No supported Ray has a public name for them; `get` keeps the default dict from growing.
    """
    return list(env_runner._ongoing_episodes_for_metrics.get(episode_id, ()))


#: The tag of what `ask_env_runners` has asked; Ray asks by itself, too.
_ASKED = "asked"
#: The methods of a group that give what env runners have sampled; the first since Ray 2.49.
_FETCH = ("foreach_env_runner_async_fetch_ready", "fetch_ready_async_reqs")
#: For so many seconds at most is a sample waited for: there may be other things to do.
_PATIENCE = 0.1


def ask_env_runners(
    group: EnvRunnerGroup, function: Callable[[Any], Any], only: int | None = None, most: int = 1
) -> None:
    """Calls a function in remote env runners (all, or `only` one), and waits for no answer.

    One that has `most` calls to answer is not asked. (Ray has a limit, too:
    `max_requests_in_flight_per_env_runner`.)
    """
    manager = group._worker_manager
    busy = Counter(index for _, index in _in_flight_requests(group))
    idle = [i for i in manager.actor_ids() if busy[i] < most and only in (None, i)]
    if idle:
        manager.foreach_actor_async(function, tag=_ASKED, remote_actor_ids=idle)


def answers_of_env_runners(group: EnvRunnerGroup, seconds: float | None) -> list[tuple[int, Any]]:
    """What env runners have answered that were asked; waits for the first, or so many seconds.

    Returns:
        Indices and answers; errors are handled as the config says.
    """
    wait_for_any(group, (), seconds)
    manager = group._worker_manager
    found = manager.fetch_ready_async_reqs(tags=_ASKED, timeout_seconds=0.0)
    manager.handle_remote_call_result_errors(
        found, ignore_ray_errors=group._ignore_ray_errors_on_env_runners
    )
    return [(answer.actor_id, answer.get()) for answer in found.ignore_errors()]


def wait_for_any(group: EnvRunnerGroup, others: Iterable[Any], seconds: float | None) -> None:
    """Waits until an env runner has answered, or another reference is there.

    Ray's own method waits until all are.
    """
    import ray

    waiting = [*(reference for reference, _ in _in_flight_requests(group)), *others]
    if waiting:
        ray.wait(waiting, num_returns=1, timeout=seconds)


def wait_for_samples(algorithm: Algorithm) -> None:
    """Lets IMPALA and APPO wait for a sample where none is there.

    Ray's ask again at once (2.40 - 2.60), and keep a core busy with it, which env runners on the
    same machine need. Learners have a thread of their own.
    """
    import ray
    from ray.rllib.algorithms.impala import IMPALA

    group = algorithm.env_runner_group
    if not isinstance(algorithm, IMPALA) or algorithm.learner_group is None or group is None:
        return

    def waiting(fetch: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: object, **kwargs: Any) -> Any:
            if samples := [
                reference for reference, _ in _in_flight_requests(group, kwargs.get("tag"))
            ]:
                ray.wait(samples, num_returns=1, timeout=_PATIENCE)
            return fetch(*args, **kwargs)

        return call

    for name in _FETCH:
        if hasattr(group, name):
            setattr(group, name, waiting(getattr(group, name)))


def forget_requests(group: EnvRunnerGroup, seconds: float) -> None:
    """Waits until env runners have answered everything, and drops the answers."""
    import ray

    if waiting := [reference for reference, _ in _in_flight_requests(group)]:
        ray.wait(waiting, num_returns=len(waiting), timeout=seconds)
        answers_of_env_runners(group, 0.0)


def requests_in_flight(group: EnvRunnerGroup) -> dict[int, set[Any]]:
    """What remote env runners have not answered yet, by their indices."""
    found: dict[int, set[Any]] = {}
    for reference, index in _in_flight_requests(group, None):
        found.setdefault(index, set()).add(reference)
    return found


def healthy_env_runners(group: EnvRunnerGroup) -> int:
    """How many remote env runners answer."""
    return len(healthy_indices(group))


def healthy_indices(group: EnvRunnerGroup) -> list[int]:
    """The indices of the remote env runners that answer."""
    return list(group._worker_manager.healthy_actor_ids())


def _in_flight_requests(group: EnvRunnerGroup, tag: str | None = _ASKED) -> list[tuple[Any, int]]:
    """What was asked by a tag (None: any) and not answered yet, and the index of who was."""
    flying = group._worker_manager._in_flight_req_to_actor_id.items()
    return [(reference, index) for reference, (its, index) in flying if tag in (its, None)]
