"""Callbacks of every era, called as today's env runners call them."""

from functools import partial
from types import SimpleNamespace
from typing import ClassVar
from unittest import mock

import numpy as np
import pytest
import torch
from ray import cloudpickle
from ray.rllib.algorithms.ppo import PPOConfig
from rllib_compat.agents.callbacks import MultiCallbacks

from rllib_compat.adapters import (
    CallbackAdapter,
    DefaultCallbacks,
    EvaluationFunction,
    adapt_callbacks,
    adapt_config,
)
from rllib_compat.errors import CompatError, ConfigError, GoneError
from rllib_compat.runtime import RECORDS, LegacyBaseEnv, LegacyWorker
from tests.unit.runtime.runners import Logged, module, play, runner


def parts_of(chunk):
    """The episodes of its agents, or the only one."""
    return getattr(chunk, "agent_episodes", {"": chunk}).values()


def record_of(env_runner):
    """The one; beside it, some Rays are told of each sample (`log_sample_end`)."""
    assert {key for key, _ in env_runner.metrics} == {RECORDS}
    (record,) = (value for _, value in env_runner.metrics if value is not False)
    return record


def test_functions_get_the_info_dict_and_metrics_reach_the_record():
    def start(info):
        assert set(info) == {"env", "policy", "episode", "worker"}
        assert isinstance(info["env"], LegacyBaseEnv)
        info["episode"].user_data["steps"] = 0

    def step(info):
        info["episode"].user_data["steps"] += 1

    def end(info):
        episode = info["episode"]
        episode.custom_metrics["n"] = episode.length
        episode.hist_data["seen"] = [episode.user_data["steps"]]
        episode.media["note"] = list(info["policy"])

    env_runner = runner()
    functions = {"on_episode_start": start, "on_episode_step": step, "on_episode_end": end}
    play(adapt_callbacks(functions)(), env_runner, steps=4, cut_after=2)
    record = record_of(env_runner)
    assert (record.length, record.reward) == (4, 8.0)
    assert record.agent_rewards == {("agent0", "default_policy"): 8.0}
    assert record.custom_metrics == {"n": 4}
    assert record.hist_data == {"seen": [4]}
    assert record.media == {"note": ["default_policy"]}


def test_classes_of_all_signatures_are_called_with_what_they_take():
    seen = []

    class Positional:  # 0.8.5
        def on_episode_end(self, worker, base_env, policies, episode, **kwargs):
            seen.append((type(worker).__name__, list(policies), episode.length))

    class Keywords(DefaultCallbacks):  # 1.0
        def __init__(self, legacy_callbacks_dict=None):
            super().__init__(legacy_callbacks_dict)

        def on_episode_end(self, *, worker, base_env, policies, episode, env_index, **kwargs):
            seen.append((worker.worker_index, env_index, base_env.num_envs))

    class Todays:
        def on_episode_end(self, *, episode, metrics_logger, **kwargs):
            seen.append(type(episode).__name__)

    play(adapt_callbacks([Positional, Keywords, Todays])(), runner())
    assert seen == [("LegacyWorker", ["default_policy"], 4), (2, 0, 1), "SingleAgentEpisode"]


def test_without_callbacks_records_are_sent_all_the_same():
    env_runner = runner()
    play(adapt_callbacks(None)(), env_runner)
    assert record_of(env_runner).reward == 8.0


def test_only_those_who_listen_to_steps_pay_for_them():
    assert "on_episode_step" not in vars(CallbackAdapter)
    assert type(adapt_callbacks({"on_episode_end": print})()).on_episode_step is (
        CallbackAdapter.on_episode_step
    )


def test_dotted_names_and_pickles_work():
    adapter = adapt_callbacks("rllib_compat.runtime.callbacks.DefaultCallbacks")
    assert isinstance(adapter().legacy[0], DefaultCallbacks)
    counting = adapt_callbacks(
        {"on_episode_end": lambda i: i["episode"].custom_metrics.update(n=i["episode"].length)}
    )
    env_runner = runner()
    play(cloudpickle.loads(cloudpickle.dumps(counting))(), env_runner)
    assert record_of(env_runner).custom_metrics == {"n": 4}


class Named(DefaultCallbacks):
    def __init__(self, name="one"):
        super().__init__()
        self.name = name

    def on_episode_end(self, *, episode, **_):
        episode.custom_metrics[self.name] = episode.length


@pytest.mark.parametrize(
    ("callbacks", "metrics"),
    [
        (partial(Named, "two"), {"two": 4}),
        (lambda: Named("three"), {"three": 4}),
        (lambda: MultiCallbacks([Named, partial(Named, "four")]), {"one": 4, "four": 4}),
    ],
)
def test_a_function_makes_them_as_a_class_does(callbacks, metrics):
    env_runner = runner()
    adapter = cloudpickle.loads(cloudpickle.dumps(adapt_callbacks(callbacks)))
    play(adapter(), env_runner)
    assert record_of(env_runner).custom_metrics == metrics


@pytest.mark.parametrize("agents", [None, (0, 1)])
def test_what_postprocessing_writes_is_what_is_learned_from(agents):
    counts = []

    def postprocess(info):
        batch = info["post_batch"]
        counts.append(batch.count)
        info["episode"].custom_metrics["parts"] = len(counts)
        assert info["all_pre_batches"][info["agent_id"]] == info["pre_batch"]
        assert not info["pre_batch"][1]["rewards"].flags.writeable
        batch["rewards"][:] += 10
        batch["obs"] = batch["obs"] * 2
        batch["bonus"] = np.arange(batch.count)

    env_runner = runner() if agents is None else runner(p0=module(), p1=module())
    chunks = play(
        adapt_callbacks({"on_postprocess_traj": postprocess})(),
        env_runner,
        steps=4,
        cut_after=3,
        agents=agents,
    )
    each = 1 if agents is None else 2
    assert counts == [3] * each + [1] * each
    parts = [part for chunk in chunks for part in parts_of(chunk)]
    assert [list(part.get_rewards()) for part in parts] == [[12.0] * n for n in counts]
    firsts = [np.ravel(part.get_observations(slice(0, len(part)))).tolist() for part in parts]
    # The observation at the cut belongs to both chunks, and each has its own copy of it.
    assert firsts == [[0.0, 2.0, 4.0]] * each + [[6.0]] * each
    assert [list(part.get_extra_model_outputs("bonus")) for part in parts] == [
        list(range(n)) for n in counts
    ]
    record = record_of(env_runner)
    assert record.custom_metrics == {"parts": 2 * each}
    assert record.reward == 4 * 2.0 * each, "the result tells what the environment gave"


@pytest.mark.parametrize("name", ["advantages", "terminateds", "dones"])
def test_a_write_that_could_have_no_effect_is_an_error(name):
    def postprocess(info):
        info["post_batch"][name] = np.ones(info["post_batch"].count)

    adapter = adapt_callbacks({"on_postprocess_traj": postprocess})()
    with pytest.raises(GoneError, match=name):
        play(adapter, runner(), steps=2)


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("event", ["on_postprocess_traj", "on_sample_end"])
def test_dones_that_callbacks_change_are_an_error_by_name(event, in_place):
    def change(info):
        batch = info["post_batch" if "post_batch" in info else "samples"]
        if in_place:
            batch["dones"][0] = True
        else:
            batch["dones"] = ~batch["dones"]

    adapter = adapt_callbacks({event: change})()
    with pytest.raises(GoneError, match="dones"):
        play(adapter, runner(), steps=4, cut_after=3)


def test_samples_say_that_they_have_dones():
    found = []

    def look(info):
        batch = info["samples"]
        found.append("dones" in batch)

    play(adapt_callbacks({"on_sample_end": look})(), runner(), steps=4, cut_after=3)
    assert found == [True]


def test_dones_that_stay_as_they_are_may_be_set():
    def same(info):
        info["samples"]["dones"] = info["samples"]["dones"].astype(bool)

    play(adapt_callbacks({"on_sample_end": same})(), runner(), steps=4, cut_after=3)


def test_samples_come_as_a_batch():
    counts = []
    adapter = adapt_callbacks({"on_sample_end": lambda i: counts.append(i["samples"].count)})()
    play(adapter, runner(), steps=4, cut_after=3)
    assert counts == [3]


@pytest.mark.parametrize("agents", [None, (0, 1)])
def test_what_is_written_into_samples_is_what_is_learned_from(agents):
    def double(info):
        batches = getattr(info["samples"], "policy_batches", {"p0": info["samples"]})
        batches["p0"]["rewards"][1] = 7

    env_runner = runner() if agents is None else runner(p0=module(), p1=module())
    adapter = adapt_callbacks({"on_sample_end": double})()
    chunk, _ = play(adapter, env_runner, steps=4, cut_after=3, agents=agents)
    rewards = [list(part.get_rewards()) for part in parts_of(chunk)]
    assert rewards == [[2.0, 7.0, 2.0], [2.0, 2.0, 2.0]][: 1 if agents is None else 2]


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [({"on_episode_and": print}, "on_episode_and"), (5, "type int")],
)
def test_what_is_no_callback_is_an_error(callbacks, message):
    with pytest.raises(ConfigError, match=message):
        adapt_callbacks(callbacks)


class TestEpisode:
    """What the episode answers at its end, after it was cut in the middle."""

    @pytest.fixture
    def episode(self):
        held = []
        play(
            adapt_callbacks({"on_episode_end": lambda i: held.append(i["episode"])})(),
            runner(),
            steps=4,
            cut_after=2,
        )
        return held[0]

    def test_lasts(self, episode):
        assert episode.last_observation_for().tolist() == [4]
        assert episode.last_raw_obs_for("agent0").tolist() == [4]
        assert episode.last_info_for() == {"t": 4}
        assert (episode.last_action_for(), episode.prev_action_for()) == (4, 3)
        assert (episode.last_reward_for(), episode.prev_reward_for()) == (2.0, 2.0)
        assert episode.last_done_for()
        assert episode.rnn_state_for() == []
        assert episode.last_observation_for("nobody") is None
        assert episode.last_action_for("nobody") == 0

    def test_who_is_there(self, episode):
        assert episode.get_agents() == ["agent0"]
        assert episode.policy_for() == "default_policy"
        assert isinstance(episode.worker, LegacyWorker)
        assert episode.env_id == 0

    def test_todays_methods_are_there_too(self, episode):
        assert episode.get_return() == 4.0  # of the last chunk alone, as Ray has it

    def test_what_is_gone_says_where_it_went(self, episode):
        with pytest.raises(GoneError, match="postprocess_episode"):
            _ = episode.postprocess_episode
        assert not hasattr(episode, "postprocess_episode")

    def test_a_soft_reset_counts_anew(self, episode):
        before = episode.episode_id, episode.length, episode.total_reward
        assert before[1:] == (4, 8.0)
        episode.soft_reset()
        assert (episode.length, episode.total_reward) == (0, 0.0)
        assert episode.episode_id != before[0]

    def test_what_was_sampled_last_can_be_read(self, episode):
        (batch,) = episode.batch_builder.policy_collectors["default_policy"].batches
        assert batch["dones"].tolist() == [False, True]
        assert batch["rewards"].tolist() == [2.0, 2.0]
        assert (episode.batch_builder.env_steps, episode.batch_builder.agent_steps) == (2, 2)


def test_many_agents_have_rewards_by_agent_and_policy():
    held = []
    env_runner = runner(p0=module(), p1=module())
    adapter = adapt_callbacks({"on_episode_end": lambda i: held.append(i["episode"])})()
    play(adapter, env_runner, steps=4, cut_after=2, agents=[0, 1])
    (episode,) = held
    assert episode.length == 4
    assert episode.agent_rewards == {(0, "p0"): 8.0, (1, "p1"): 8.0}
    assert episode.last_info_for(1) == {"t": 4}
    assert record_of(env_runner).reward == 16.0


def test_train_results_are_completed_before_the_callback_changes_them():
    def changed(info):
        info["result"]["twice"] = 2 * info["result"]["episode_reward_mean"]
        info["result"]["by"] = info["trainer"]

    env_runner = runner()
    adapter = adapt_callbacks({"on_train_result": changed})()
    adapter.owner = "the trainer"
    play(adapter, env_runner)
    result = {"env_runners": {RECORDS: [record_of(env_runner)]}}
    config = SimpleNamespace(
        metrics_num_episodes_for_smoothing=9,
        input_="sampler",
        keep_per_episode_custom_metrics=False,
    )
    algorithm = SimpleNamespace(config=config)
    adapter.on_train_result(algorithm=algorithm, result=result, metrics_logger=None)
    assert (result["twice"], result["by"]) == (16.0, "the trainer")


class TestWorker:
    def test_policies_and_environments(self):
        worker = LegacyWorker(runner(p0=module(), p1=module()))
        assert worker.foreach_policy(lambda policy, policy_id: policy_id) == ["p0", "p1"]
        assert worker.foreach_trainable_policy(lambda policy, policy_id: policy_id) == ["p0"]
        assert worker.get_policy("nobody") is None
        assert worker.for_policy(lambda policy: policy.policy_id, "p1") == "p1"
        assert worker.get_weights(["p1"]) == {"p1": {"w": np.ones(1)}}
        assert worker.foreach_env(lambda env: env.spec.id) == ["CartPole-v1"]
        assert worker.env.spec.id == "CartPole-v1"
        assert worker.policy_config == {"gamma": 0.5}
        assert worker.worker_index == 2

    def test_what_is_gone_says_where_it_went(self):
        worker = LegacyWorker(runner())
        with pytest.raises(GoneError, match="unlock"):
            _ = worker.unlock
        with pytest.raises(GoneError, match="get_session"):
            _ = worker.get_policy().get_session


def test_the_trainer_comes_when_it_is_complete():
    seen = []

    class Init(DefaultCallbacks):
        def on_trainer_init(self, *, trainer, **kwargs):
            seen.append(trainer)

    adapted = adapt_callbacks(Init)
    adapted().on_algorithm_init(algorithm="algorithm")
    adapted.has_trainer = True
    adapter = adapted()
    adapter.on_algorithm_init(algorithm="algorithm")
    evaluation = EvaluationFunction(print)
    config = SimpleNamespace(custom_evaluation_function=evaluation)
    trainer = SimpleNamespace(algorithm=SimpleNamespace(config=config))
    adapter.set_trainer(trainer)
    assert seen == ["algorithm", trainer]
    assert evaluation.trainer is trainer
    assert cloudpickle.loads(cloudpickle.dumps(evaluation)).trainer is None


def test_policies_are_told_once_and_new_ones_when_they_come():
    seen = []

    class Create(DefaultCallbacks):
        def on_create_policy(self, *, policy_id, policy):
            seen.append((policy_id, policy.policy_id))

    env_runner = runner(p0=module())
    adapter = adapt_callbacks(Create)()
    play(adapter, env_runner, agents=(0,))
    env_runner.module["p1"] = module()
    play(adapter, env_runner, agents=(0, 1))
    assert seen == [("p0", "p0"), ("p1", "p1")]


class Doubling(DefaultCallbacks):
    def on_learn_on_batch(self, *, policy, train_batch, result, **kwargs):
        result["mean_reward"] = float(train_batch["rewards"].mean())
        train_batch["advantages"] *= 2


class Learner:
    """As much of a learner as an update takes."""

    def __init__(self, config):
        self.config, self.metrics = config, Logged()
        self.module = {"p0": SimpleNamespace(unwrapped=module)}
        self.learned = None

    def _update(self, batch):
        self.learned = batch


def test_train_batches_are_told_to_callbacks_and_can_be_changed():
    config = PPOConfig().callbacks(adapt_callbacks(Doubling)).training(learner_class=Learner)
    adapt_config(config)
    learner = config.learner_class(config)
    state = {"h": torch.ones(2)}
    batch = {
        "rewards": torch.tensor([1.0, 3.0]),
        "advantages": torch.tensor([1.0, 2.0]),
        "state_in": state,
    }
    learner._update({"p0": batch})
    assert learner.learned["p0"]["advantages"].tolist() == [2.0, 4.0]
    assert learner.learned["p0"]["state_in"] is state
    assert learner.metrics == [(("p0", "mean_reward"), 2.0)]


class Changing(DefaultCallbacks):
    """Adds a column, removes one, and sets one to what a batch can't have."""

    column: ClassVar = None

    def on_learn_on_batch(self, *, policy, train_batch, result, **kwargs):
        train_batch["twice"] = 2.0 * train_batch["rewards"]
        train_batch["pairs"] = np.stack([train_batch["rewards"]] * 2, axis=1)
        del train_batch["advantages"]
        if self.column is not None:
            train_batch["rewards"] = self.column


def test_columns_that_callbacks_add_and_remove_are_those_that_losses_get():
    config = PPOConfig().callbacks(adapt_callbacks(Changing)).training(learner_class=Learner)
    adapt_config(config)
    learner = config.learner_class(config)
    batch = {
        "rewards": torch.tensor([1.0, 3.0, 9.0]),
        "advantages": torch.tensor([1.0, 2.0, 3.0]),
        "loss_mask": torch.tensor([True, True, False]),
    }
    learner._update({"p0": dict(batch)})
    learned = learner.learned["p0"]
    assert learned.keys() == {"rewards", "loss_mask", "twice", "pairs"}
    assert learned["twice"].tolist() == [2.0, 6.0, 0.0]
    assert learned["pairs"].tolist() == [[1.0, 1.0], [3.0, 3.0], [0.0, 0.0]]
    for column in (np.zeros(3), np.array([1.0]), ["a", "b"]):
        wrong = mock.patch.object(Changing, "column", column)
        with wrong, pytest.raises(CompatError, match="set the column 'rewards'"):
            learner._update({"p0": dict(batch)})


def test_learners_are_left_alone_where_nobody_listens():
    config = (
        PPOConfig().callbacks(adapt_callbacks(DefaultCallbacks)).training(learner_class=Learner)
    )
    adapt_config(config)
    assert config.learner_class is Learner


@pytest.mark.parametrize("name", ["NoFilter", "no_such_module.Callbacks", "math.Callbacks"])
def test_callbacks_whose_name_nothing_has_are_one_clear_error(name):
    with pytest.raises(ConfigError, match=f"{name}.*cannot be imported") as raised:
        adapt_callbacks(name)
    assert raised.value.where == "$.callbacks"


def test_a_function_of_callbacks_with_arguments_is_refused_and_its_own_errors_are_its_own():
    with pytest.raises(ConfigError, match=r"cannot be called without arguments.*'info'"):
        adapt_callbacks(lambda info: info)

    def broken():
        raise TypeError("a mistake of the user")

    with pytest.raises(TypeError, match="a mistake of the user"):
        adapt_callbacks(broken)
