"""What env runners of Ray 2.40 don't do themselves: their seed and their times."""

import copy
import random
from types import SimpleNamespace

import pytest
from ray.util.timer import _Timer

from rllib_compat.ray_versions import env_runners
from rllib_compat.ray_versions import timers as ray_timers


class Module:
    def forward_exploration(self, batch):
        return batch

    forward_inference = forward_exploration


def runner(**more):
    def pipeline(*means):
        timers = {str(mean): _Timer() for mean in means}
        for name, timer in timers.items():
            timer.push(float(name))
        return SimpleNamespace(timers=timers)

    made = SimpleNamespace(
        config=SimpleNamespace(seed=7, in_evaluation=False, framework_str="torch"),
        worker_index=2,
        module=Module(),
        _env_to_module=pipeline(1, 2),
        _module_to_env=pipeline(4),
        _try_env_step=lambda actions: actions,
    )
    vars(made).update(more)
    return made


def logged(env_runner):
    values = {}
    logger = SimpleNamespace(log_value=lambda key, value, window: values.update({key: value}))
    ray_timers.log_sampler_times(env_runner, logger)
    return values


def test_each_runner_has_a_seed_of_its_own():
    seeds = []
    env = SimpleNamespace(reset=lambda seed: seeds.append(seed))
    state = random.getstate()
    env_runners.seed_env_runner(runner(), env)
    env_runners.seed_env_runner(runner(worker_index=3), env)
    evaluation = SimpleNamespace(seed=7, in_evaluation=True, framework_str="torch")
    env_runners.seed_env_runner(runner(config=evaluation), env)
    random.setstate(state)
    assert seeds == [9, 10, 1_000_009]


@pytest.mark.parametrize(
    "more", [{"_seed": 1}, {"config": SimpleNamespace(seed=None, in_evaluation=False)}]
)
def test_runners_that_seed_themselves_or_have_none_are_left_alone(more):
    env_runners.seed_env_runner(runner(**more), env=None)


def test_times_of_connectors_steps_and_inference():
    env_runner = runner()
    first = logged(env_runner)
    assert first == {
        ("env_to_module_connector", "connector_pipeline_timer"): 3.0,
        ("module_to_env_connector", "connector_pipeline_timer"): 4.0,
    }
    assert env_runner._try_env_step("actions") == "actions"
    assert env_runner.module.forward_exploration("batch") == "batch"
    second = logged(env_runner)
    assert second.keys() - first.keys() == {"env_step_timer", "rlmodule_inference_timer"}
    assert 0 < second["env_step_timer"] < 1


def test_later_releases_time_themselves():
    assert logged(runner(_env_to_module=SimpleNamespace())) == {}


def test_a_module_is_exported_without_the_clock():
    env_runner = runner()
    logged(env_runner)
    assert vars(env_runner.module)
    assert vars(ray_timers.without_timers(env_runner.module)) == {}
    copy.copy(env_runner.module).forward_inference("batch")
