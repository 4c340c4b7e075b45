"""`env_task_fn`, asked for each of the user's environments in real env runners."""

from types import SimpleNamespace

import pytest
from ray.rllib.algorithms.ppo.ppo_torch_policy import PPOTorchPolicy

from rllib_compat.adapters import CompatEnvRunner, CompatRolloutWorker
from rllib_compat.config import translate
from rllib_compat.errors import ConfigError
from rllib_compat.runtime import as_legacy, user_env
from tests.unit.runtime.levels import Levels

# Ray registers the same name for each env runner of a process.
pytestmark = pytest.mark.filterwarnings("ignore:.*already in registry")


class NoTask:
    """The same without one."""

    observation_space, action_space = Levels.observation_space, Levels.action_space
    reset, step = Levels.reset, Levels.step

    def __init__(self, config):
        pass


def next_level(result, env, context):
    return int(result["episode_reward_mean"]) + context.vector_index


def runner_of(stack, env=Levels):
    given = {"env": env, "env_task_fn": next_level, "num_workers": 0, "num_envs_per_worker": 2}
    config = translate(given, algorithm="PPO", api_stack=stack).algorithm_config
    if stack == "new":
        return config, CompatEnvRunner(config=config)
    worker = CompatRolloutWorker(
        env_creator=config.env, default_policy_class=PPOTorchPolicy, config=config
    )
    return config, worker


def after(result, config, runner):
    group = SimpleNamespace(foreach_env_runner=lambda function: [function(runner)])
    (curriculum,) = config.callbacks_class.sources
    curriculum().on_train_result(trainer=SimpleNamespace(env_runner_group=group), result=result)


@pytest.mark.parametrize("stack", ["new", "old"])
def test_a_curriculum_sets_the_task_of_every_environment_and_only_new_ones(stack):
    config, runner = runner_of(stack)
    for reward in (1.0, 2.0, 2.0):
        after({"episode_reward_mean": reward}, config, runner)
    sets = as_legacy(runner).foreach_env_with_context(lambda env, context: user_env(env).set)
    assert sets == [[2], [2, 3]]


def test_a_curriculum_of_environments_without_tasks_is_one_clear_error():
    config, runner = runner_of("old", NoTask)
    with pytest.raises(ConfigError, match="NoTask has no set_task"):
        after({"episode_reward_mean": 1.0}, config, runner)
