"""What keys come to mean: not only their new names."""

import gymnasium
import numpy as np
import pytest
from packaging.version import Version

from rllib_compat.config import Era, default_config, find_algorithm, translate
from rllib_compat.config.deferred import PreviousStepsConnector
from rllib_compat.config.rules import models
from rllib_compat.config.rules.sampling import GONE
from rllib_compat.errors import ConfigError, RefusedKeysError, UnknownKeysError
from rllib_compat.neutral import Severity, Verdict
from rllib_compat.ray_versions import replay
from rllib_compat.registry import keys
from rllib_compat.runtime import resolve_env_name
from tests.unit.config.samples import setting, verdicts

MINIMUM_SAMPLED = "reporting.min_sample_timesteps_per_iteration"


def one(config, path, algorithm="PPO", **how):
    how.setdefault("legacy_ray", Era(None))  # nothing but what the config says
    return setting(translate(config, algorithm=algorithm, **how), path)


@pytest.mark.parametrize(
    ("algorithm", "config", "path", "expected"),
    [
        ("PPO", {"num_workers": 3}, "env_runners.num_env_runners", 3),
        ("PPO", {"sample_batch_size": 50}, "env_runners.rollout_fragment_length", 50),
        ("PPO", {"num_sgd_iter": 5}, "training.num_epochs", 5),
        ("PPO", {"sgd_minibatch_size": 64}, "training.minibatch_size", 64),
        ("PPO", {"lambda": 0.9}, "training.lambda_", 0.9),
        ("PPO", {"train_batch_size": 800}, "training.train_batch_size_per_learner", 800),
        (
            "PPO",
            {"train_batch_size": 800, "num_gpus": 2},
            "training.train_batch_size_per_learner",
            400,
        ),
        ("PPO", {"num_gpus": 2}, "learners.num_learners", 2),
        ("PPO", {"num_gpus": 2, "_fake_gpus": True}, "learners.num_gpus_per_learner", 0),
        ("PPO", {"num_gpus": 0.5}, "learners.num_gpus_per_learner", 0.5),
        ("IMPALA", {"gpu": True, "gpu_fraction": 0.3}, "learners.num_gpus_per_learner", 0.3),
        ("PPO", {"vf_share_layers": True}, "rl_module.model_config.vf_share_layers", True),
        ("PPO", {"model": {"fcnet_hiddens": [8]}}, "rl_module.model_config.fcnet_hiddens", [8]),
        (
            "PPO",
            {"model": {"use_lstm": True, "lstm_use_prev_action_reward": True}},
            "env_runners.env_to_module_connector",
            PreviousStepsConnector(actions=1, rewards=1),
        ),
        ("PPO", {"min_iter_time_s": 0}, "reporting.min_time_s_per_iteration", None),
        (
            "PPO",
            {"timesteps_per_iteration": 9},
            "reporting.min_sample_timesteps_per_iteration",
            9,
        ),
        ("CQL", {"timesteps_per_iteration": 9}, "reporting.min_train_timesteps_per_iteration", 9),
        ("PPO", {"evaluation_num_episodes": 4}, "evaluation.evaluation_duration_unit", "episodes"),
        ("PPO", {"framework": "tf"}, "framework.framework", "torch"),
        ("PPO", {"use_pytorch": False}, "framework.framework", "torch"),
        ("DQN", {"buffer_size": 7}, "training.replay_buffer_config.capacity", 7),
        (
            "DQN",
            {"prioritized_replay": False},
            "training.replay_buffer_config.type",
            replay.weighted_buffer("EpisodeReplayBuffer") or "EpisodeReplayBuffer",
        ),
        ("DQN", {"hiddens": [5]}, "rl_module.model_config.head_fcnet_hiddens", [5]),
        (
            "SAC",
            {"optimization": {"entropy_learning_rate": 0.1}},
            "training.alpha_lr",
            0.1,
        ),
        ("SAC", {"target_entropy": None}, "training.target_entropy", "auto"),
        ("SAC", {"train_batch_size": 512}, "training.train_batch_size_per_learner", 512),
        ("APPO", {"num_sgd_iter": 4}, "training.circular_buffer_iterations_per_batch", 4),
        ("APPO", {"minibatch_buffer_size": 1}, "training.circular_buffer_num_batches", 1),
        ("IMPALA", {"num_sgd_iter": 4}, "training.num_epochs", 4),
        ("PPO", {"sgd_minibatch_size": 128, "num_gpus": 2}, "training.minibatch_size", 64),
        ("DDPPO", {"sgd_minibatch_size": 50, "num_gpus": 2}, "training.minibatch_size", 50),
        ("DQN", {"framework": "tf"}, "training.grad_clip_by", "norm"),
        ("DQN", {"framework": "torch"}, "training.grad_clip_by", None),
        ("SAC", {"framework": "tf", "grad_clip": 1.0}, "training.grad_clip_by", "norm"),
        ("SAC", {"framework": "tf"}, "training.grad_clip_by", None),
        ("PPO", {"framework": "tf", "grad_clip": 1.0}, "training.grad_clip_by", None),
        ("SAC", {"model": {"vf_share_layers": True}}, "rl_module", None),
        ("APPO", {"timesteps_per_iteration": 500}, MINIMUM_SAMPLED, 500),
        ("PPO", {"timesteps_per_iteration": 1e4}, MINIMUM_SAMPLED, 10_000),
        ("PPO", {"min_sample_timesteps_per_iteration": 1.5}, MINIMUM_SAMPLED, 2),
        ("IMPALA", {"entropy_coeff": -0.01}, "training.entropy_coeff", 0.01),
    ],
)
def test_values_arrive(algorithm, config, path, expected):
    assert one(config, path, algorithm) == expected


class TestSchedules:
    @pytest.mark.parametrize(
        ("points", "lr", "expected"),
        [
            ([[0, 1.0], [10, 0.5]], None, [[0, 1.0], [10, 0.5]]),
            ([[5, 1.0], [10, 0.5]], 0.3, [[0, 0.3], [5, 1.0], [10, 0.5]]),
            ([[5, 1.0], [10, 0.5]], None, [[0, 1.0], [5, 1.0], [10, 0.5]]),
            ([[0, 0.25]], None, 0.25),
        ],
    )
    def test_begin_at_step_0(self, points, lr, expected):
        config = {"lr_schedule": points} | ({} if lr is None else {"lr": lr})
        assert one(config, "training.lr") == expected

    def test_of_entropy(self):
        config = {"entropy_coeff_schedule": [[0, 0.1], [9, 0.0]]}
        assert one(config, "training.entropy_coeff") == [[0, 0.1], [9, 0.0]]

    def test_none_leaves_the_plain_value(self):
        assert one({"lr": 0.1, "lr_schedule": None}, "training.lr") == 0.1


class TestExploration:
    def test_epsilon_greedy(self):
        config = {"exploration_config": {"epsilon_timesteps": 200, "final_epsilon": 0.01}}
        assert one(config, "training.epsilon", "DQN") == [[0, 1.0], [200, 0.01]]

    def test_warm_up(self):
        config = {"exploration_config": {"warmup_timesteps": 50, "epsilon_timesteps": 100}}
        assert one(config, "training.epsilon", "DQN") == [[0, 1.0], [50, 1.0], [150, 0.05]]

    def test_before_0_8(self):
        config = {"schedule_max_timesteps": 1000, "exploration_fraction": 0.5}
        assert one(config, "training.epsilon", "DQN") == [[0, 1.0], [500, 0.02]]

    @pytest.mark.parametrize(
        ("kind", "algorithm"),
        [("Curiosity", "PPO"), ("Curiosity", "A2C"), ("SoftQ", "PPO")],
    )
    def test_classes_need_the_old_stack(self, kind, algorithm):
        translation = translate({"exploration_config": {"type": kind}}, algorithm=algorithm)
        assert translation.api_stack == "old"
        assert translation.report.facts["old API stack because of"] == "$.exploration_config"
        assert setting(translation, "env_runners.exploration_config.type") == kind

    @pytest.mark.parametrize("algorithm", ["DQN", "SimpleQ", "APEX"])
    @pytest.mark.parametrize(
        ("config", "told"),
        [
            ({"soft_q": True, "softmax_temp": 0.5}, {"soft_q_temperature": 0.5}),
            ({"exploration_config": {"type": "SoftQ"}}, {"soft_q_temperature": 1.0}),
            ({"parameter_noise": True}, {"parameter_noise": {"initial_stddev": 1.0}}),
            (
                {"exploration_config": {"type": "ParameterNoise", "initial_stddev": 0.2}},
                {"parameter_noise": {"initial_stddev": 0.2}},
            ),
            ({"noisy": True}, {"sigma0": 0.5}),
            ({"noisy": True, "sigma0": 0.1}, {"sigma0": 0.1}),
        ],
    )
    def test_modules_of_q_values_explore_otherwise(self, config, told, algorithm):
        translation = translate(config, algorithm=algorithm, legacy_ray=Era(None))
        assert translation.api_stack == "new"
        assert setting(translation, "rl_module.model_config") == told
        assert not translation.lost

    def test_fake_gpus_are_one_learner_on_the_old_stack_too(self):
        config = {"num_gpus": 2, "_fake_gpus": True}
        translation = translate(config, algorithm="PPO", api_stack="old")
        assert setting(translation, "resources.num_gpus") == 0
        assert "_fake_gpus" not in translation.calls["resources"]

    def test_a_switch_from_before_0_8_is_kept_on_the_old_stack(self):
        config = {"soft_q": True, "softmax_temp": 0.5}
        translation = translate(config, algorithm="DQN", api_stack="old")
        assert setting(translation, "env_runners.exploration_config.temperature") == 0.5

    @pytest.mark.parametrize(
        ("helper", "epsilon"),
        [
            (None, [[0, 1.0], [8, 1.0], [9, 0.01]]),
            ({"type": "EpsilonGreedy", "final_epsilon": 0.2}, [[0, 1.0], [10000, 0.2]]),
            (
                {"epsilon_schedule": {"type": "PiecewiseSchedule", "endpoints": [(0, 1), (5, 0)]}},
                [[0, 1], [5, 0]],
            ),
        ],
    )
    def test_noise_on_weights_has_a_helper(self, helper, epsilon):
        noise = {"type": "ParameterNoise", "random_timesteps": 7, "sub_exploration": helper}
        assert one({"exploration_config": noise}, "training.epsilon", "DQN") == epsilon

    @pytest.mark.parametrize(
        ("inner", "explores"),
        [
            ({"exploration_config": {"initial_epsilon": 0.0, "final_epsilon": 0.0}}, False),
            ({"exploration_config": {"final_epsilon": 0.1}}, True),
            ({"exploration_config": {"final_epsilon": 0.1}, "explore": False}, False),
            ({"exploration_config": {"type": "SoftQ"}, "explore": False}, False),
            ({"exploration_config": {"type": "SoftQ"}}, None),
        ],
    )
    def test_an_evaluation_explores_if_it_was_told_to_and_does_something(self, inner, explores):
        config = {"evaluation_config": inner, "evaluation_interval": 1}
        found = translate(config, algorithm="DQN").calls["evaluation"].get("evaluation_config", {})
        assert found.get("explore") is explores

    @pytest.mark.parametrize(
        ("of_all", "of_one", "left"),
        [
            ({"noisy": True}, {"noisy": False}, {"sigma0": None}),
            ({"soft_q": True}, {"soft_q": False}, {"soft_q_temperature": None}),
            ({"parameter_noise": True}, {"parameter_noise": False}, {"parameter_noise": None}),
            (
                {"exploration_config": {"type": "SoftQ"}},
                {"exploration_config": {"type": "EpsilonGreedy"}},
                {"soft_q_temperature": None, "parameter_noise": None},
            ),
            ({"exploration_config": {"type": "SoftQ"}}, {"lr": 0.1}, {}),
        ],
    )
    def test_a_policy_that_explores_in_another_way_than_all_others_does_so(
        self, of_all, of_one, left
    ):
        spaces = (gymnasium.spaces.Box(-1, 1, (3,)), gymnasium.spaces.Discrete(2))
        policies = {"a": (None, *spaces, {}), "b": (None, *spaces, of_one)}
        agents = {"policies": policies, "policy_mapping_fn": lambda agent: agent}
        translation = translate({**of_all, "multiagent": agents}, algorithm="DQN")
        models = getattr(translation.calls["rl_module"].get("rl_module_spec"), "models", {})
        assert not models.get("a")
        assert models.get("b", {}) == left

    def test_another_helper_of_noise_on_weights_is_told(self):
        noise = {"type": "ParameterNoise", "sub_exploration": {"type": "GaussianNoise"}}
        assert translate({"exploration_config": noise}, algorithm="DQN").lost

    @pytest.mark.parametrize("algorithm", ["DQN", "SimpleQ", "APEX", "R2D2"])
    def test_stochastic_sampling_drew_q_values_as_soft_q_does(self, algorithm):
        config = {"exploration_config": {"type": "StochasticSampling"}}
        translation = translate(config, algorithm=algorithm)
        assert translation.api_stack == "new"
        told = translation.calls["rl_module"]["model_config"]
        assert told["soft_q_temperature"] == 1.0
        assert setting(translation, "training.epsilon") == 0.0

    @pytest.mark.parametrize(
        ("algorithm", "stack"),
        [
            *((name, "old") for name in ("PPO", "SAC", "IMPALA")),
            *((name, "new") for name in ("MARWIL", "BC", "CQL")),  # they learn from recordings
        ],
    )
    def test_what_has_no_epsilon_explores_with_one_as_old_policies_do(self, algorithm, stack):
        config = {"exploration_config": {"type": "EpsilonGreedy"}}
        assert translate(config, algorithm=algorithm).api_stack == stack

    @pytest.mark.parametrize(
        ("algorithm", "says", "fix"),
        [
            ("RNNSAC", "RNNSAC runs on the new API stack alone", "take it out"),
            ("PPO", "the new API stack is asked for", "api_stack='old'"),
        ],
    )
    def test_what_only_the_old_stack_has_is_refused_with_why_it_is_the_new_one(
        self, algorithm, says, fix
    ):
        model = {"use_attention": True}
        translation = translate({"model": model}, algorithm=algorithm, api_stack="new")
        assert translation.refused
        (finding,) = (f for f in translation.report if f.path == "$.model.use_attention")
        assert says in finding.message
        assert fix in finding.hint

    @pytest.mark.parametrize(
        ("algorithm", "kind", "word"),
        [
            *(("R2D2", kind, kind) for kind in ("ParameterNoise", "GaussianNoise")),
            *(("RNNSAC", kind, kind) for kind in ("ParameterNoise", "Curiosity")),
            *((name, "Curiosity", "1.13.0 failed") for name in ("DQN", "SimpleQ", "APEX", "SAC")),
            ("SAC", "UpperConfidenceBound", "BanditLinUCB"),
            ("PPO", "ThompsonSampling", "BanditLinTS"),
        ],
    )
    def test_what_nothing_explores_by_is_refused_by_name(self, algorithm, kind, word):
        translation = translate({"exploration_config": {"type": kind}}, algorithm=algorithm)
        assert translation.refused
        (finding,) = (f for f in translation.report if f.path == "$.exploration_config")
        assert finding.hint
        assert word in finding.message + finding.hint

    @pytest.mark.parametrize("key", ["use_gae", "use_critic"])
    def test_advantages_without_a_critic_need_whole_episodes(self, key):
        config = {"use_gae": False, key: False}
        for algorithm in ("PPO", "DDPPO"):
            assert translate(config, algorithm=algorithm).refused
        assert translate({"use_critic": False}, algorithm="PPO").refused  # and GAE with one
        assert not translate(config | {"batch_mode": "complete_episodes"}, algorithm="PPO").refused

    @pytest.mark.parametrize(
        ("algorithm", "name", "value"),
        [
            *((name, "env_runners.explore", False) for name in ("A2C", "PG", "MARWIL")),
            *((name, "training.epsilon", 0.0) for name in ("DQN", "SimpleQ", "APEX")),
        ],
    )
    def test_a_bandits_bound_without_a_bandit_takes_the_best_action(self, algorithm, name, value):
        config = {"exploration_config": {"type": "UpperConfidenceBound"}, "explore": True}
        translation = translate(config, algorithm=algorithm)
        assert translation.api_stack == "new"
        assert setting(translation, name) == value

    def test_stochastic_sampling_is_what_modules_do(self):
        translation = translate({"exploration_config": {"type": "StochasticSampling"}})
        assert translation.api_stack == "new"
        assert not translation.calls


class TestEnvironment:
    def test_wrappers(self):
        config = {"env": "E", "horizon": 9, "soft_horizon": True, "no_done_at_end": True}
        clipped = config | {"clip_rewards": 2.0}
        translation = translate(clipped, algorithm="PPO", legacy_ray=Era(None))
        assert translation.env == {
            "env": "E",
            "horizon": 9,
            "soft_horizon": True,
            "no_done_at_end": True,
            "clip_rewards": 2.0,
            "env_config": {},
        }

    def test_atari_gets_what_it_always_got(self):
        config = {"model": {"dim": 42, "framestack": False}}
        env = translate(config, algorithm="PPO", env="PongNoFrameskip-v4").env
        assert env["preprocessor_pref"] == "deepmind"
        assert env["clip_rewards"] is True
        assert env["atari"] == {"dim": 42, "framestack": None}

    @pytest.mark.parametrize("name", ["ALE/Pong-v5", "PongDeterministic-v4", "Breakout-v0"])
    def test_so_do_games_of_other_names(self, name):
        env = translate({"model": {"dim": 42}}, algorithm="PPO", env=name).env
        assert (env["clip_rewards"], env["atari"]) == (True, {"dim": 42})

    @pytest.mark.parametrize("name", ["CartPole-v0", "ALE/Pong-ram-v5", "Pong-ram-v0"])
    def test_others_do_not(self, name):
        env = translate({"model": {"dim": 42}}, algorithm="PPO", env=name).env
        assert not env.get("clip_rewards")
        assert "atari" not in env

    @pytest.mark.parametrize(
        ("name", "now", "severity"),
        [
            ("Pendulum-v0", "`Pendulum-v1`", Severity.INFO),
            ("LunarLander-v2", "`LunarLander-v3`", Severity.WARNING),
            ("Hopper-v2", "`Hopper-v4`", Severity.WARNING),
        ],
    )
    def test_a_version_that_is_gone_is_told_with_what_differs(self, name, now, severity):
        (row,) = (f for f in translate({"env": name}, algorithm="PPO").report if f.path == "$.env")
        assert now in row.message
        assert row.severity is severity

    @pytest.mark.skipif(
        Version(gymnasium.__version__) < Version("1.2"),
        reason="it still offers the versions that ask for mujoco-py",
    )
    def test_the_table_of_versions_says_what_gymnasium_does(self):
        for row in GONE:
            for version in row.versions:
                name = f"{row.stem}-v{version}"
                assert resolve_env_name(name)[0] == f"{row.stem}-v{row.now}", name

    def test_versions_that_are_there_are_not_mentioned(self):
        for name in ("CartPole-v0", "CartPole-v1", "Pendulum-v1", "MountainCar-v0", "my_env"):
            (row,) = (f for f in translate({"env": name}).report if f.path == "$.env")
            assert "gymnasium" not in row.message

    def test_what_the_environment_itself_will_tell_is_kept_for_it(self):
        env = translate({"model": {"dim": 42}}, algorithm="PPO", env="my_pong").env
        assert env["atari"] == {"dim": 42}

    @pytest.mark.parametrize("name", ["ALE/Pong-v5", "my_pong"])
    def test_todays_configs_wrap_for_themselves(self, name):
        env = translate({"num_env_runners": 1}, algorithm="PPO", env=name).env
        assert env["preprocessor_pref"] is None
        later = translate({}, algorithm="PPO", env=name, legacy_ray="2.44.1").env
        assert later["preprocessor_pref"] is None

    def test_priorities_of_buffers_for_many_agents(self):
        config = {"multiagent": {"policies": {"a": (None, None, None, {}), "b": (None,) * 4}}}
        translation = translate(config, algorithm="DQN")
        buffer = translation.algorithm_config.replay_buffer_config
        assert (buffer["alpha"], buffer["beta"]) == (0.6, 0.4)
        given = translate({**config, "prioritized_replay_alpha": 0.9}, algorithm="DQN")
        assert given.algorithm_config.replay_buffer_config["alpha"] == 0.9
        plain = translate({**config, "prioritized_replay": False}, algorithm="DQN")
        # Ray 2.40 learns from prioritized buffers only: one that prefers nothing.
        assert not plain.algorithm_config.replay_buffer_config.get("alpha")

    def test_observation_filter(self):
        translation = translate({"observation_filter": "MeanStdFilter"}, algorithm="PPO")
        assert "env_to_module_connector" in translation.calls["env_runners"]
        assert verdicts(translation)["$.observation_filter"] == "wrapped"
        assert not translate({"observation_filter": "NoFilter"}, algorithm="PPO").calls

    @pytest.mark.parametrize("key", ["policies", "policy_graphs"])
    def test_each_policy_has_a_filter_by_whichever_key_it_is_named(self, key):
        several = {key: {"one": (None, None, None, {})}, "policy_mapping_fn": lambda _: "one"}
        config = {"observation_filter": "MeanStdFilter", "multiagent": several}
        connector = setting(
            translate(config, algorithm="PPO"), "env_runners.env_to_module_connector"
        )
        assert connector.multi_agent

    def test_a_filter_of_ones_own_needs_the_old_stack(self):
        translation = translate({"observation_filter": print}, algorithm="PPO")
        assert translation.api_stack == "old"
        assert setting(translation, "env_runners.observation_filter") is print

    def test_spaces_by_repr(self):
        translation = translate({"action_space": "Discrete(4)"}, algorithm="PPO")
        assert translation.calls["environment"]["action_space"].build().n == 4


class TestBatches:
    def test_rounds_of_fragments_are_what_was_trained_on(self):
        config = {"rollout_fragment_length": 20, "num_workers": 32, "train_batch_size": 4000}
        assert one(config, "training.train_batch_size_per_learner") == 4480

    @pytest.mark.parametrize(("learners", "size"), [(1, 8), (2, 20)])
    def test_a_minibatch_of_several_learners_holds_a_sequence(self, learners, size):
        asked = {"num_learners": learners, "sgd_minibatch_size": 8 * learners}
        config = {**asked, "model": {"use_lstm": True}}
        assert one(config, "training.minibatch_size") == size

    def test_a_minibatch_fits_into_its_batch(self):
        assert one({"train_batch_size": 100}, "training.minibatch_size") == 100

    def test_a_fragment_holds_n_steps(self):
        config = {"rollout_fragment_length": 1, "n_step": 3}
        assert one(config, "env_runners.rollout_fragment_length", "SAC") == 3

    @pytest.mark.parametrize(
        ("config", "steps"),
        [
            ({"rollout_fragment_length": 250, "num_envs_per_worker": 10}, 2500),
            ({"train_batch_size": -1, "num_envs_per_worker": 2}, 200),
            ({"train_batch_size": 300}, 300),  # since Ray 2.3
            ({}, None),  # 500, as ever
        ],
    )
    def test_a_ddppo_worker_learns_from_its_own_fragments(self, config, steps):
        translation = translate({"num_workers": 4, "num_gpus": 1, **config}, algorithm="DDPPO")
        assert translation.algorithm == "DDPPO"
        assert setting(translation, "training.train_batch_size_per_learner") == steps
        assert setting(translation, "learners") is None

    def test_ddppo_is_told_the_size_of_a_batch_in_one_way(self):
        both = {"rollout_fragment_length": 100, "train_batch_size": 4000}
        assert translate(both, algorithm="DDPPO").refused


class TestEvaluation:
    def test_inner_keys_are_translated(self):
        config = {
            "evaluation_interval": 1,
            "evaluation_config": {"num_envs_per_worker": 1, "explore": False, "lambda": 0.5},
        }
        assert one(config, "evaluation.evaluation_config") == {
            "num_envs_per_env_runner": 1,
            "explore": False,
            "lambda_": 0.5,
        }

    def test_the_frames_of_an_evaluation_are_its_own(self):
        inner = {"model": {"dim": 42}}
        config = {"env": "E", "evaluation_config": inner}
        inside = one(config, "evaluation.evaluation_config.env")
        assert inside.settings == {"env": "E", "atari": {"dim": 42}}
        assert inside.build() is not None
        nowhere = one(
            {"evaluation_config": inner | {"explore": False}}, "evaluation.evaluation_config"
        )
        assert nowhere == {"explore": False}

    def test_an_environment_of_its_own_keeps_the_outer_wrappers(self):
        config = {"env": "E", "horizon": 5, "evaluation_config": {"env": "F"}}
        inner = one(config, "evaluation.evaluation_config.env")
        assert inner.settings == {"env": "F", "horizon": 5}

    def test_parallel_needs_runners(self):
        config = {"evaluation_parallel_to_training": True}
        assert one(config, "evaluation.evaluation_parallel_to_training") is False


class TestDefaults:
    def test_of_a_known_ray_become_explicit(self):
        translation = translate({}, algorithm="SAC", legacy_ray="1.0.1")
        rows = [f for f in translation.report if f.verdict is Verdict.DEFAULT]
        assert {"$.clip_actions", "$.Q_model.fcnet_activation"} & {f.path for f in rows}
        assert setting(translation, "rl_module.model_config.fcnet_activation") == "relu"

    @pytest.mark.parametrize("ray", ["0.8.5", "1.13.0", "2.10.0"])
    def test_of_appo_learn_from_fresh_batches_and_follow_them(self, ray):
        """As ever; today's replay eight batches, so that the target network hardly ever moves."""
        translation = translate({"num_sgd_iter": 6}, algorithm="APPO", legacy_ray=ray)
        assert setting(translation, "training.circular_buffer_num_batches") == 1
        assert setting(translation, "training.circular_buffer_iterations_per_batch") == 6
        assert setting(translation, "training.target_network_update_freq") == 1

    def test_never_override_the_user(self):
        translation = translate({"clip_actions": False}, algorithm="PPO", legacy_ray="0.8.5")
        assert setting(translation, "environment.clip_actions") is False

    def test_as_a_dict(self):
        config = default_config("PPO", "0.8.5")
        assert config["sgd_minibatch_size"] == 128
        assert config["model"]["fcnet_hiddens"] == [256, 256]
        config["model"]["fcnet_hiddens"].append(1)
        assert default_config("PPO", "0.8.5")["model"]["fcnet_hiddens"] == [256, 256]

    @pytest.mark.parametrize("ray", ["0.1", "new"])
    def test_of_no_ray(self, ray):
        with pytest.raises(ConfigError):
            default_config("PPO", ray)


class TestUnknownKeys:
    def test_are_told_all_at_once(self):
        model = {"fcnet_hidens": [4]}
        policies = {"p1": (None, None, None, {"model": model})}
        config = {"gama": 0.9, "model": model, "multiagent": {"policies": policies}}
        with pytest.raises(UnknownKeysError) as caught:
            translate(config, algorithm="PPO")
        text = str(caught.value)
        for path in (
            "$.gama",
            "$.model.fcnet_hidens",
            "$.multiagent.policies.p1[3].model.fcnet_hidens",
        ):
            assert path in text
        assert "did you mean 'gamma' (Ray 0.5.0 – 2.60.0)?" in text

    def test_of_a_policy_alone_are_told_and_left_out(self):
        spec = (None, None, None, {"obs_space_dict": {}, "gamma": 0.5})
        config = {"multiagent": {"policies": {"a": spec}}}
        translation = translate(config, algorithm="PPO")
        (row,) = [f for f in translation.report if "obs_space_dict" in f.message]
        assert (row.severity.value, row.path) == ("warning", "$.multiagent.policies.a[3]")
        overrides = setting(translation, "rl_module.algorithm_config_overrides_per_module")
        assert overrides["a"]["gamma"] == 0.5

    @pytest.mark.parametrize(("how", "severity"), [("warn", "warning"), ("pass", "info")])
    def test_can_be_let_through(self, how, severity):
        translation = translate({"gama": 1}, algorithm="PPO", on_unknown=how)
        (row,) = [f for f in translation.report if f.verdict is Verdict.UNKNOWN]
        assert row.severity.value == severity


class TestStacks:
    def test_a_custom_model_needs_the_old_one(self):
        config = {"model": {"custom_model": "my_model", "fcnet_hiddens": [4]}, "num_gpus": 1}
        translation = translate(config, algorithm="PPO")
        assert translation.api_stack == "old"
        assert setting(translation, "training.model") == config["model"]
        assert setting(translation, "resources.num_gpus") == 1
        assert setting(translation, "api_stack.enable_rl_module_and_learner") is False

    def test_the_new_one_on_request_refuses_it(self):
        config = {"model": {"custom_model": "my_model"}}
        translation = translate(config, algorithm="PPO", api_stack="new")
        assert translation.refused
        with pytest.raises(RefusedKeysError, match=r"\$.model.custom_model"):
            _ = translation.algorithm_config


class TestAlgorithms:
    @pytest.mark.parametrize(
        ("given", "name"),
        [
            ("PPO", "PPO"),
            ("PPOTrainer", "PPO"),
            ("ray.rllib.agents.ppo.PPOAgent", "PPO"),
            ("ImpalaTrainer", "IMPALA"),
            ("ApexDDPGTrainer", "APEX_DDPG"),
            ("contrib/MADDPG", "MADDPG"),
            ("SimpleQTrainer", "SimpleQ"),
        ],
    )
    def test_by_name(self, given, name):
        assert find_algorithm({}, given) == (name, "given")

    def test_by_keys(self):
        assert find_algorithm({"n_step": 3, "dueling": True}) == ("DQN", "by its keys")
        assert find_algorithm({"sgd_minibatch_size": 3, "kl_coeff": 1}) == ("PPO", "by its keys")

    def test_else_it_is_assumed_aloud(self):
        translation = translate({"lr": 0.1})
        assert translation.algorithm == "PPO"
        assert any(f.rule == "algorithm.assumed" for f in translation.report)

    def test_unknown(self):
        with pytest.raises(ConfigError, match="never had an algorithm 'PPPO'"):
            find_algorithm({}, "PPPO")

    def test_removed_ones_are_refused_with_advice(self):
        translation = translate({"lr": 0.1}, algorithm="MAML")
        (row,) = translation.report.at_least(Severity.ERROR)
        assert row.rule == "algorithm.removed"
        assert "DifferentiableLearner" in row.hint

    def test_only_networks_of_rnnsac_have_a_memory(self):
        # The keys are those of Ray's example; they had been called keys that no Ray had.
        memory = {"use_lstm": True, "lstm_cell_size": 64}
        for section in ("Q_model", "policy_model_config"):
            kept = one({section: memory}, "rl_module.model_config", "RNNSAC")
            assert kept == memory | {"max_seq_len": 20}
            translation = translate({section: memory}, algorithm="CQL")
            (row,) = translation.report.at_least(Severity.ERROR)
            assert row.path == f"$.{section}.use_lstm"
            assert translation.refused
        assert not translate({"Q_model": {"use_lstm": False}}, algorithm="SAC").refused

    @pytest.mark.parametrize("algorithm", ["SAC", "CQL", "TD3", "QMIX", "MADDPG", "CRR"])
    @pytest.mark.parametrize(
        "asked",
        ["use_lstm", "use_attention", "lstm_use_prev_action", "lstm_use_prev_action_reward"],
    )
    def test_networks_without_a_memory_get_none_aloud(self, algorithm, asked):
        translation = translate({"model": {"use_lstm": True, asked: True}}, algorithm=algorithm)
        assert translation.api_stack == "new"
        told = {row.path for row in translation.report.at_least(Severity.WARNING)}
        assert told == {"$.model.use_lstm", f"$.model.{asked}"}
        assert "env_to_module_connector" not in translation.calls.get("env_runners", {})
        assert not setting(translation, "rl_module.model_config", {}).get("use_lstm")

    @pytest.mark.parametrize("algorithm", ["MARWIL", "BC"])
    def test_what_learns_from_recordings_with_attention_is_refused(self, algorithm):
        asked, not_asked = ({"model": {"use_attention": told}} for told in (True, False))
        assert translate(asked, algorithm=algorithm).refused
        assert not translate(not_asked, algorithm=algorithm).refused

    @pytest.mark.parametrize("algorithm", ["MARWIL", "BC"])
    def test_only_the_new_stack_learns_from_recordings_with_an_lstm(self, algorithm):
        """Ray 1.13.0 failed with each: an IndexError, whatever had made the recording."""
        lstm = {"env": "CartPole-v1", "model": {"use_lstm": True}, "input": "steps.json"}
        told = {**lstm, "exploration_config": {"type": "Random"}}
        old = translate(told, algorithm=algorithm)
        (finding,) = (f for f in old.report if f.verdict is Verdict.REFUSED)
        assert (finding.path, old.api_stack) == ("$.model.use_lstm", "old")
        for trained in (lstm, {**told, "input": "sampler"}):
            assert not translate(trained, algorithm=algorithm).refused

    def test_q_networks_without_a_memory_get_no_attention(self):
        translation = translate({"model": {"use_attention": True}}, algorithm="DQN")
        assert (translation.api_stack, translation.refused, translation.lost) == (
            "new",
            False,
            True,
        )

    def test_ddpg_acts_at_random_where_it_is_told_to(self):
        told = one({"exploration_config": {"type": "Random"}}, "training.exploration_noise", "TD3")
        assert told["type"] == "GaussianNoise"
        assert told["random_timesteps"] > 1e12

    def test_successors(self):
        translation = translate({}, algorithm="SimpleQ")
        assert translation.algorithm == "DQN"
        assert setting(translation, "training.dueling") is False

    @pytest.mark.parametrize(
        ("stack", "buffer"), [("new", "EpisodeReplayBuffer"), ("old", "MultiAgentReplayBuffer")]
    )
    def test_successors_have_a_buffer_of_their_stack(self, stack, buffer):
        translation = translate({}, algorithm="SimpleQ", api_stack=stack, legacy_ray="today")
        kind = setting(translation, "training.replay_buffer_config.type")
        assert getattr(kind, "arguments", (kind,)) == (buffer,)


@pytest.mark.parametrize("ray", ["1.9.2", "1.10.0", "1.12.1", "1.13.0"])
@pytest.mark.parametrize(
    ("algorithm", "said", "kind", "capacity"),
    [
        ("DQN", {"capacity": 100}, "Prioritized", 100),
        ("DDPG", {"capacity": 100}, "Prioritized", 100),
        ("SAC", {"capacity": 100}, "", 100),
        # Its `buffer_size`, a default of its own, went before what the other key says.
        ("TD3", {"type": "MultiAgentReplayBuffer", "capacity": 100}, "", 1_000_000),
    ],
)
@pytest.mark.parametrize("switch", [None, True, False])
def test_prioritized_replay_says_whether_the_one_buffer_had_priorities(
    ray, algorithm, said, kind, capacity, switch
):
    """Ray 1.9 - 1.13 had one class of buffers, by a name without priorities, for both."""
    config = {"env": "Pendulum-v1", "replay_buffer_config": said}
    if switch is not None:
        config["prioritized_replay"], kind = switch, "Prioritized" if switch else ""
    translation = translate(config, algorithm=algorithm, legacy_ray=ray)
    found = translation.algorithm_config.replay_buffer_config
    assert (found["type"], found["capacity"]) == (f"{kind}EpisodeReplayBuffer", capacity)


def test_the_old_stack_has_the_buffer_that_ray_1_9_called_local():
    for algorithm, switch, kind in (
        ("DQN", {}, "MultiAgentPrioritizedReplayBuffer"),
        ("SAC", {}, "MultiAgentReplayBuffer"),
        ("SAC", {"prioritized_replay": True}, "MultiAgentPrioritizedReplayBuffer"),
    ):
        config = {"env": "CartPole-v1", "replay_buffer_config": {"type": "LocalReplayBuffer"}}
        made = translate(config | switch, algorithm=algorithm, legacy_ray="1.9.2", api_stack="old")
        found = made.algorithm_config.replay_buffer_config["type"]
        assert getattr(found, "__name__", found) == kind


@pytest.mark.parametrize(
    "config", [{"replay_sequence_length": 4}, {"multiagent": {"replay_mode": "lockstep"}}]
)
def test_what_no_ray_replayed_by_priorities_is_refused_on_the_old_stack(config):
    asked = {"algorithm": "DQN", "legacy_ray": "1.12.1", "api_stack": "old"}
    (finding,) = (f for f in translate(config, **asked).report if f.verdict == "refused")
    assert "prioritized_replay" in finding.hint
    assert not translate({**config, "prioritized_replay": False}, **asked).refused


@pytest.mark.parametrize(
    ("ray", "config"),
    [
        ("0.6.6", {"parameter_noise": True}),
        ("1.13.0", {"exploration_config": {"type": "ParameterNoise"}}),
    ],
)
def test_noise_on_weights_is_for_whole_episodes_on_the_old_stack_too(ray, config):
    made = translate(config, algorithm="DQN", legacy_ray=ray, api_stack="old")
    assert setting(made, "env_runners.batch_mode") == "complete_episodes"


def test_an_lstm_knows_its_sequences():
    config = {"model": {"use_lstm": True}}
    assert one(config, "rl_module.model_config.max_seq_len") == 20
    config["model"]["max_seq_len"] = 7
    assert one(config, "rl_module.model_config.max_seq_len") == 7


def test_what_is_rendered_no_more_is_said_aloud():
    for config in ({"render_env": True}, {"evaluation_config": {"render_env": True}}):
        loud = translate(config, algorithm="PPO").report.at_least(Severity.WARNING)
        assert any("render_env" in row.path for row in loud)
    quiet = translate({"render_env": False}, algorithm="PPO").report.at_least(Severity.WARNING)
    assert not any("render_env" in row.path for row in quiet)


@pytest.mark.parametrize(
    ("algorithm", "gpus", "is_said"), [("PPO", 2, True), ("PPO", 1, False), ("APPO", 2, False)]
)
def test_passes_of_several_learners_of_ppo_are_said_to_be_todays(algorithm, gpus, is_said):
    report = translate({"num_gpus": gpus}, algorithm=algorithm).report
    found = [f for f in report if f.path == "$.num_gpus" and f.severity is Severity.WARNING]
    assert bool(found) == is_said


def test_newer_names_win_over_older_ones():
    config = {"sample_batch_size": 10, "rollout_fragment_length": 20}
    translation = translate(config, algorithm="PPO")
    assert setting(translation, "env_runners.rollout_fragment_length") == 20
    assert verdicts(translation)["$.sample_batch_size"] == "dropped"


def test_grid_searches_are_kept_for_tune():
    config = {"lr": {"grid_search": [1, 2]}, "observation_filter": {"grid_search": ["NoFilter"]}}
    config["lr_schedule"] = None
    assert one(config, "training.lr") == {"grid_search": [1, 2]}


def test_values_of_the_wrong_kind_are_refused_and_not_raised():
    translation = translate({"lr_schedule": 5, "hiddens": 3}, algorithm="DQN")
    assert [f.verdict for f in translation.report if f.path == "$.hiddens"] == [Verdict.REFUSED]


@pytest.mark.parametrize(
    ("algorithm", "legacy_ray", "is_told"),
    [("APPO", None, True), ("APPO", "1.13.0", True), ("APPO", "2.48.0", False)],
)
def test_vtrace_is_switched_off_for_trainers_of_old_appos_alone(algorithm, legacy_ray, is_told):
    translation = translate({"vtrace": False}, algorithm=algorithm, legacy_ray=legacy_ray)
    assert setting(translation, "training.vtrace") is True
    assert (
        translation.legacy_training is not None and not translation.legacy_training.vtrace
    ) is is_told
    assert bool(translation.report.at_least(Severity.WARNING)) is not is_told


def test_marks_for_renamed_keys_are_no_values():
    assert translate({"sgd_minibatch_size": -1}, algorithm="PPO").calls == {}


@pytest.mark.parametrize(("on", "severity"), [(True, Severity.WARNING), (False, Severity.INFO)])
def test_another_algorithms_key_is_a_warning_only_if_it_asks_for_something(on, severity):
    report = translate({"dueling": on}, algorithm="PPO").report
    (row,) = [f for f in report if f.path == "$.dueling"]
    assert row.severity is severity


def test_what_configs_of_maddpg_say():
    spec = {"p0": (None, None, None, {"agent_id": 0, "use_local_critic": True}), "p1": None}
    example = "ray.rllib.examples.multi_agent_and_self_play.policy_mapping_fn.PolicyMappingFn"
    config = {
        "learning_starts": 200,
        "buffer_size": 500,
        "grad_norm_clipping": 0.3,
        "good_policy": "ddpg",
        "lr": 0.1,
        "multiagent": {
            "policies": spec,
            "policy_mapping_fn": {"type": example},
            "replay_mode": "lockstep",
        },
    }
    translation = translate(config, algorithm="contrib/MADDPG")
    assert translation.algorithm == "MADDPG"
    assert setting(translation, "training.num_steps_sampled_before_learning_starts") == 200
    assert setting(translation, "training.buffer_size") == 500
    assert setting(translation, "training.grad_clip") == 0.3
    own = setting(translation, "rl_module.algorithm_config_overrides_per_module")
    assert own == {"p0": {"agent_id": 0, "use_local_critic": True}}
    assert setting(translation, "multi_agent.policy_mapping_fn").build()(1) == "p1"
    (row,) = translation.report.at_least(Severity.WARNING)
    assert row.path == "$.good_policy"
    with pytest.raises(RefusedKeysError, match="without a network before them"):
        _ = translate({"use_state_preprocessor": True}, algorithm="MADDPG").algorithm_config


def test_networks_of_sac_take_every_key_of_the_model_config():
    """RLlib merged `policy_model` and `Q_model` with all of MODEL_DEFAULTS."""
    known = [*keys.section("model"), *keys.section("model_config")]
    for algorithm in ("SAC", "CQL", "RNNSAC"):
        for section in models.SAC_NETWORKS:
            config = {section: dict.fromkeys(known, None)}
            report = translate(config, algorithm=algorithm).report
            assert {f"$.{section}.{key}" for key in known} <= {f.path for f in report}
    with pytest.raises(UnknownKeysError, match="unheard_of"):
        translate({"policy_model": {"unheard_of": 1}}, algorithm="SAC")


def test_what_a_network_of_sac_cannot_honour_is_said():
    inner = {"conv_activation": "tanh", "free_log_std": True, "lstm_cell_size": 8}
    config = {"policy_model": inner, "Q_model": {"conv_activation": "relu", "max_seq_len": 9}}
    translation = translate(config, algorithm="SAC", legacy_ray=Era(None))
    assert translation.calls["rl_module"]["model_config"] == {"conv_activation": "tanh"}
    warned = {f.path for f in translation.report.at_least(Severity.WARNING)}
    assert warned == {
        *(f"$.policy_model.{key}" for key in ("free_log_std", "lstm_cell_size")),
        *(f"$.Q_model.{key}" for key in ("conv_activation", "max_seq_len")),
    }
    assert translate({"Q_model": {"use_attention": True}}, api_stack="new", algorithm="SAC").refused
    old = translate({"Q_model": inner}, algorithm="CQL", api_stack="old")
    assert setting(old, "training.q_model_config.free_log_std") is True
    wrong = translate({"policy_model": {"lstm_cell_size": "many"}}, algorithm="RNNSAC").report
    assert [f.verdict for f in wrong if f.path.endswith("cell_size")] == [Verdict.REFUSED]


@pytest.mark.parametrize("algorithm", ["BC", "MARWIL"])
def test_what_learns_from_recordings_is_not_told_of_a_step_before_that_these_lack(algorithm):
    """MARWIL took the last parts of each observation for it, without an environment."""
    model = {"use_lstm": True, "lstm_use_prev_action": True, "lstm_use_prev_reward": True}
    made = translate({"model": model, "input": "/tmp/steps"}, algorithm=algorithm)
    told = made.calls["rl_module"]["model_config"]
    assert told["use_lstm"] is True
    assert not any(name.startswith("lstm_use_prev") for name in told)
    assert "env_to_module_connector" not in made.calls.get("env_runners", {})
    (row,) = [f for f in made.report if f.rule == "settle.previous-steps-of-recordings"]
    assert row.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("algorithm", "config"),
    [
        ("ES", {"exploration_config": {"type": "Random"}}),
        ("ARS", {"exploration_config": {"type": "GaussianNoise", "stddev": 0.3}}),
        ("Random", {"model": {"custom_model": "mine", "custom_action_dist": "mine"}}),
        ("BanditLinUCB", {"model": {"use_attention": True, "custom_model": "mine"}}),
    ],
)
def test_what_an_algorithm_never_read_is_no_reason_to_refuse(algorithm, config):
    assert not translate(config, algorithm=algorithm).refused


def test_policies_that_are_no_bandits_do_not_explore_as_those_do():
    config = {"exploration_config": {"type": "ThompsonSampling"}}
    (refused,) = [f for f in translate(config, algorithm="A2C").report if f.verdict == "refused"]
    assert refused.path == "$.exploration_config"
    assert "BanditLinTS" in refused.hint
    assert not translate(config, algorithm="BanditLinTS").refused
    config = {"exploration_config": {"type": "RE3"}}
    assert translate(config, algorithm="PPO").refused
    config = {"exploration_config": {"type": "Curiosity"}}
    assert translate(config, algorithm="IMPALA").refused
    assert not translate(config, algorithm="PPO").refused


@pytest.mark.parametrize("given", [-1.0, -1])
def test_a_target_of_minus_one_is_not_taken_for_unset_by_ray(given):
    translation = translate(
        {"env": "Pendulum-v1", "target_entropy": given}, algorithm="SAC", legacy_ray="1.13.0"
    )
    namespace = {}
    exec(translation.to_python(), namespace)
    for config in (translation.algorithm_config, namespace["config"]):
        made = type(config).from_state(config.get_state())  # so does an `Algorithm` begin
        assert np.float32(made.target_entropy) == -1


def test_a_whole_number_of_minus_one_stays_one():
    given = {"env": "Pendulum-v1", "seed": -1}
    config = translate(given, algorithm="SAC", legacy_ray="1.13.0").algorithm_config
    assert (type(config.seed), config.seed) == (int, -1)
