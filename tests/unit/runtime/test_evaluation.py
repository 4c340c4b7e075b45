"""Custom evaluation functions between the legacy trainer and today's Ray."""

from types import SimpleNamespace

from rllib_compat import legacy
from rllib_compat.adapters import DefaultCallbacks, EvaluationFunction, adapt_callbacks
from rllib_compat.legacy import lookup
from rllib_compat.runtime import as_legacy, evaluation
from tests.unit.runtime.runners import play, runner

legacy.deactivate()  # to import it is to activate it

METRICS = "ray.rllib.evaluation.metrics"
collect_metrics = lookup(METRICS, "collect_metrics")
summarize_episodes = lookup(METRICS, "summarize_episodes")
TRAINER = SimpleNamespace(evaluation_workers="workers")


def test_the_function_gets_trainer_and_workers_and_its_metrics_reach_the_result():
    function = EvaluationFunction(lambda *given: {"given": given, "episode_len_mean": 4.0})
    assert function("algorithm", "group")["given"] == ("algorithm", "group"), "no trainer yet"
    function.trainer = TRAINER
    metrics, env_steps, agent_steps = function("algorithm", "group")
    assert metrics["given"] == (TRAINER, "workers")
    assert env_steps == agent_steps == 1, "Ray 2.40 takes no zero"
    result = {"env_runners": {}}
    config = SimpleNamespace(
        custom_evaluation_function=function, keep_per_episode_custom_metrics=False
    )
    algorithm = SimpleNamespace(config=config)
    adapt_callbacks(None)().on_evaluate_end(algorithm=algorithm, evaluation_metrics=result)
    assert result["given"] == (TRAINER, "workers")


def test_callbacks_of_old_find_the_metrics_below_evaluation_and_may_change_them():
    class Callbacks(DefaultCallbacks):
        def on_evaluate_end(self, *, trainer, evaluation_metrics, **kwargs):
            evaluation_metrics["evaluation"]["below"] = evaluation_metrics["evaluation"]["mean"]
            evaluation_metrics["mean"] = 2

    result = {"env_runners": {}, "mean": 1}
    algorithm = SimpleNamespace(
        config=SimpleNamespace(
            custom_evaluation_function=None, keep_per_episode_custom_metrics=False
        )
    )
    adapt_callbacks(Callbacks)().on_evaluate_end(algorithm=algorithm, evaluation_metrics=result)
    assert (result["below"], result["mean"]) == (1, 2)
    assert "evaluation" not in result, "loggers would follow it for ever"


def test_the_old_stack_takes_the_metrics_alone():
    function = EvaluationFunction(lambda trainer, workers: {"x": 1})
    function.trainer = TRAINER
    assert function() == {"x": 1}


def test_episodes_are_collected_once():
    env_runner = runner()
    adapter = adapt_callbacks(None)()
    env_runner._callbacks = [adapter]
    play(adapter, env_runner, steps=4)
    assert collect_metrics(as_legacy(env_runner))["episode_len_mean"] == 4
    assert collect_metrics(as_legacy(env_runner))["episodes_this_iter"] == 0


def test_old_episodes_may_be_summarized_with_new_ones():
    env_runner = runner()
    adapter = adapt_callbacks(None)()
    for steps in (2, 4):
        play(adapter, env_runner, steps=steps)
    old, new = adapter.ended
    result = summarize_episodes([old, new], [new])
    assert (result["episode_len_mean"], result["episodes_this_iter"]) == (3, 1)


def test_episodes_are_collected_from_all_workers_as_since_ray_2_2(monkeypatch):
    monkeypatch.setattr(
        evaluation, "_records_of", lambda env_runner: [f"an episode of {env_runner}"]
    )
    local = SimpleNamespace(env_runner="the first worker")
    workers = SimpleNamespace(local_worker=lambda: local, remote_workers=list)
    found = ["an episode of the first worker"]
    assert evaluation.collect_episodes(workers=workers, timeout_seconds=5) == found
    assert evaluation.collect_episodes(workers) == found
    assert evaluation.collect_episodes(local) == (found, [])
