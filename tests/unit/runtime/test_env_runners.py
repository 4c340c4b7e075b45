"""Errors in workers reach who calls them; what goes on without is left to Ray."""

import pytest
from ray.rllib.algorithms.ppo import PPOConfig

from rllib_compat.adapters import (
    CompatEnvRunner,
    CompatMultiAgentEnvRunner,
    CompatRolloutWorker,
    MappingFn,
)
from rllib_compat.ray_versions import releases
from rllib_compat.runtime import LegacyResults, use_compat_env_runners
from rllib_compat.runtime.policy_mapping import MappingContext


class OfRay:
    """Somebody's own env runner."""


def worker(kind, **settings):
    made = kind.__new__(kind)  # what it samples with is not asked for
    told = {"restart_failed_env_runners": False, **settings}
    made.config = PPOConfig().fault_tolerance(**told)
    return made


def broken(worker):
    raise KeyError("the simulator is gone")


KINDS = [CompatEnvRunner, CompatMultiAgentEnvRunner, CompatRolloutWorker]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_in_a_worker_is_the_callers(kind):
    with pytest.raises(KeyError, match="simulator"):
        worker(kind).apply(broken)


@pytest.mark.parametrize("asked", ["restart_failed_env_runners", "ignore_env_runner_failures"])
@pytest.mark.parametrize("kind", KINDS)
def test_who_asks_to_go_on_without_failed_workers_does(kind, asked, monkeypatch):
    of_ray = kind.__mro__[-1 - [hasattr(k, "apply") for k in kind.__mro__[::-1]].index(True)]
    monkeypatch.setattr(of_ray, "apply", lambda *_: "Ray's own way")
    assert worker(kind, **{asked: True}).apply(broken) == "Ray's own way"


def test_workers_of_ones_own_and_recording_ones_stay():
    own = PPOConfig().env_runners(env_runner_cls=OfRay)
    recording = PPOConfig().offline_data(output="/tmp/somewhere")
    plain = PPOConfig()
    for config in (own, recording, plain):
        use_compat_env_runners(config)
    assert own.env_runner_cls is OfRay
    assert recording.env_runner_cls is None
    assert plain.env_runner_cls is CompatEnvRunner


@pytest.mark.matrix
def test_an_algorithm_of_this_package_samples_fast_without_a_trainer_too():
    from rllib_compat.ray_versions import configs

    for config in (configs.todays_config("A2C"), configs.todays_config("DDPG")):
        config.environment("CartPole-v1").validate()
        assert config.env_runner_cls is CompatEnvRunner
        config.multi_agent(policies={"a", "b"}, policy_mapping_fn=lambda *_, **__: "a")
        config.validate()
        assert config.env_runner_cls is CompatMultiAgentEnvRunner
        config.freeze()
        config.validate()
    own = configs.todays_config("A2C").env_runners(env_runner_cls=OfRay)
    own.validate()
    assert own.env_runner_cls is OfRay


def test_sampling_times_pipelines_and_none_of_their_pieces_at_each_step():
    config = PPOConfig().environment("CartPole-v1")
    runner = CompatEnvRunner(config=config)
    runner.sample(num_timesteps=4)
    if releases.at_least("2.44"):  # earlier runners act in the mode for training
        assert not runner.module.training
    told = runner.get_metrics()
    for pipeline in ("env_to_module_connector", "module_to_env_connector"):
        timed = told.get(pipeline, {})
        assert "connectors" not in timed.get("timers", {})
        assert ("connector_pipeline_timer" in timed) == releases.at_least("2.44")


def test_a_result_of_an_iteration_without_a_step_is_completed():
    nothing = float("nan")
    result = {"env_runners": {"num_agent_steps_sampled_lifetime": {"agent0": nothing, "agent1": 3}}}
    LegacyResults().complete(result, PPOConfig())
    assert result["agent_timesteps_total"] == 3


def test_mapping_functions_get_the_worker_that_plays():
    MappingContext.worker = "the worker"
    try:
        assert MappingFn(lambda agent, episode, worker, **kwargs: worker)("a", None) == "the worker"
    finally:
        MappingContext.worker = None
