"""Policies, callbacks, offline data, and values that came out of a pickle."""

import gymnasium
import pytest

from rllib_compat.adapters import MappingFn, Readers, Recording
from rllib_compat.config import learns_on_old_stack, translate
from rllib_compat.errors import ConfigError
from rllib_compat.neutral import GlobalRef, StandIn, Verdict
from rllib_compat.trainer import policy_class
from tests.unit.config.samples import setting, verdicts

OBS, ACT = gymnasium.spaces.Box(-1, 1, (3,)), gymnasium.spaces.Discrete(2)
CODE = StandIn(GlobalRef("cloudpickle", "_make_function"))


def policies(given, **how):
    return translate({"multiagent": {"policies": given}}, algorithm="PPO", **how)


class TestPolicies:
    @pytest.mark.parametrize(
        "given",
        [
            {"a", "b"},
            ["a", "b"],
            ("a", "b"),
            {"a": (None, OBS), "b": (None, OBS, ACT)},
            {"a": (None, OBS, ACT, {}), "b": ()},
        ],
    )
    def test_forms(self, given):
        found = setting(policies(given), "multi_agent.policies")
        assert list(found) == ["a", "b"]

    def test_spaces_reach_spec_and_environment(self):
        translation = policies({"a": (None, OBS, ACT, {})})
        spec = setting(translation, "multi_agent.policies")["a"]
        assert spec.fields["action_space"].build() == ACT
        assert translation.env["multi_agent"] is True
        assert translation.env["policy_spaces"]["a"][0].build() == OBS

    def test_spaces_for_all_are_each_policys(self):
        config = {"multiagent": {"policies": {"a"}}, "observation_space": OBS}
        spaces = translate(config, algorithm="PPO").env["policy_spaces"]["a"]
        assert spaces[0].build() == OBS
        assert spaces[1] is None

    def test_policy_graphs(self):
        config = {"multiagent": {"policy_graphs": {"a": (None, OBS, ACT, {})}}}
        translation = translate(config, algorithm="PPO")
        assert list(setting(translation, "multi_agent.policies")) == ["a"]

    def test_own_configs_go_to_their_modules(self):
        translation = policies(
            {
                "a": (None, OBS, ACT, {"lr": 0.1, "model": {"fcnet_hiddens": [4]}}),
                "b": (None, OBS, ACT, {"explore": False}),
            }
        )
        overrides = setting(translation, "rl_module.algorithm_config_overrides_per_module")
        assert overrides == {"a": {"lr": 0.1}, "b": {"explore": False}}
        spec = setting(translation, "rl_module.rl_module_spec")
        assert spec.models == {"a": {"fcnet_hiddens": [4]}, "b": {}}

    def test_what_cannot_differ_is_told(self):
        translation = policies({"a": (None, OBS, ACT, {"num_workers": 3})})
        assert "can't differ" in str(translation.report)

    def test_rllibs_own_classes_are_what_none_means(self):
        stock = type("PPOTFPolicy", (), {"__module__": "ray.rllib.agents.ppo.ppo_tf_policy"})
        translation = policies({"a": (stock, OBS, ACT, {})})
        assert translation.api_stack == "new"
        assert verdicts(translation)["$.multiagent.policies.a[0]"] == "dropped"

    def test_policies_of_several_algorithms_stay_what_they_are_on_the_old_stack(self):
        ppo, dqn = policy_class("PPOTorchPolicy"), policy_class("DQNTorchPolicy")
        given = {"a": (ppo, OBS, ACT, {}), "b": (dqn, OBS, ACT, {"n_step": 3, "lr": 0.1})}
        specs = setting(policies(given, api_stack="old"), "multi_agent.policies")
        assert "policy_class" not in specs["a"].fields, "the algorithm's own"
        assert specs["b"].fields["policy_class"] is dqn
        assert specs["b"].fields["config"] == {"n_step": 3, "lr": 0.1}
        built = specs["b"].build().config
        assert (built["n_step"], built["double_q"]) == (3, True), "DQN's other settings are read"

    @pytest.mark.parametrize("name", ["MyPolicy", "PPOPolicyWithEntropy"])
    def test_classes_of_ones_own_need_the_old_stack(self, name):
        own = type(name, (), {})
        translation = policies({"a": (own, OBS, ACT, {"lr": 0.1})})
        assert translation.api_stack == "old"
        fields = setting(translation, "multi_agent.policies")["a"].fields
        assert fields["policy_class"] is own
        assert fields["config"] == {"lr": 0.1}

    def test_no_policies_is_one_for_all(self):
        assert not policies({}).calls

    def test_capacity_is_the_old_stacks(self):
        config = {"multiagent": {"policies": {"a"}, "policy_map_capacity": 3}}
        assert verdicts(translate(config, algorithm="PPO"))["$.multiagent.policy_map_capacity"] == (
            "dropped"
        )

    def test_policies_to_train(self):
        def choose(policy_id, batch):
            return True

        for given, expected in ((["a"], ["a"]), ({"a"}, ["a"]), (choose, choose)):
            config = {"multiagent": {"policies": {"a", "b"}, "policies_to_train": given}}
            translation = translate(config, algorithm="PPO")
            assert setting(translation, "multi_agent.policies_to_train") == expected


class TestMappingFunctions:
    @pytest.mark.parametrize(
        ("function", "result"),
        [
            (lambda agent_id: agent_id, "x"),
            (lambda agent_id, episode: (agent_id, episode), ("x", "e")),
            (lambda agent_id, episode, worker: (episode, worker), ("e", None)),
            (lambda agent_id, episode, **kw: (episode, sorted(kw)), ("e", ["worker"])),
            (lambda agent_id, **kw: sorted(kw), ["episode", "worker"]),
            (lambda agent_id, *, episode: episode, "e"),
            (lambda *args, **kw: args, ("x", "e", None)),
            (str, "x"),
        ],
    )
    def test_get_what_they_take(self, function, result):
        assert MappingFn(function)("x", "e") == result

    def test_take_the_agent_alone(self):
        assert MappingFn(lambda agent_id, episode: agent_id)("x") == "x"


class TestCallbacks:
    def test_dict(self):
        config = {"callbacks": {"on_episode_end": print, "on_train_result": None}}
        translation = translate(config, algorithm="PPO")
        found = setting(translation, "callbacks.callbacks_class")
        assert found.callbacks == {"on_episode_end": print}
        assert translation.legacy_callbacks == config["callbacks"]
        assert verdicts(translation)["$.callbacks.on_episode_end"] == "wrapped"

    def test_class(self):
        class Mine:
            pass

        translation = translate({"callbacks": Mine}, algorithm="PPO")
        assert setting(translation, "callbacks.callbacks_class").callbacks is Mine

    @pytest.mark.parametrize("nothing", [None, {}, type("DefaultCallbacks", (), {})])
    def test_nothing(self, nothing):
        assert not translate({"callbacks": nothing}, algorithm="PPO").calls

    def test_what_postprocessing_can_not_write_is_told(self):
        translation = translate({"callbacks": {"on_postprocess_traj": print}}, algorithm="PPO")
        assert "only advantages it can't write" in str(translation.report)
        assert translation.report.clean


class TestInertValues:
    @pytest.mark.parametrize("inert", [CODE, GlobalRef("a", "b"), "<function f at 0x7f>"])
    @pytest.mark.parametrize("key", ["env", "callbacks", "lr", "input", "sample_collector"])
    def test_are_never_used(self, key, inert):
        translation = translate({key: inert}, algorithm="PPO")
        assert not translation.calls
        assert verdicts(translation)[f"$.{key}"] == "dropped"
        assert "pass it again" in str(translation.report)

    def test_inside_other_values(self):
        config = {
            "env_config": {"size": 3, "make": CODE},
            "callbacks": {"on_episode_end": CODE},
            "multiagent": {"policies": {"a": (CODE, CODE, ACT, {})}, "policy_mapping_fn": CODE},
        }
        translation = translate(config, algorithm="PPO")
        assert setting(translation, "environment.env_config") == {"size": 3}
        assert set(setting(translation, "multi_agent.policies")["a"].fields) == {"action_space"}
        assert "callbacks" not in translation.calls
        assert "policy_mapping_fn" not in translation.calls["multi_agent"]
        assert verdicts(translation)["$.env_config.make"] == "dropped"

    def test_a_custom_model_that_was_not_kept_does_not_choose_the_stack(self):
        translation = translate({"model": {"custom_model": CODE}}, algorithm="PPO")
        assert translation.api_stack == "new"


class TestOfflineData:
    def test_recordings(self):
        translation = translate({"input": "/tmp/out"}, algorithm="MARWIL", env="CartPole-v1")
        assert setting(translation, "offline_data.input_").arguments == ("/tmp/out",)
        assert setting(translation, "offline_data.input_read_episodes") is True
        assert setting(translation, "offline_data.dataset_num_iters_per_learner") == 1
        space = setting(translation, "environment.observation_space").build()
        assert space.shape == (4,)

    def test_the_environment_is_asked_for_its_spaces_in_its_own_context(self):
        def made(context):
            env = gymnasium.Env()
            env.observation_space = gymnasium.spaces.Box(-1, 1, (context["size"],))
            env.action_space = gymnasium.spaces.Discrete(2 + context.worker_index)
            return env

        config = {"input": "/tmp/out", "env": made, "env_config": {"size": 3}}
        translation = translate(config, algorithm="BC")
        assert setting(translation, "environment.observation_space").build().shape == (3,)
        assert setting(translation, "environment.action_space").build().n == 2

    def test_a_dataset_of_json_files_is_recordings(self):
        config = {"input": "dataset", "input_config": {"paths": "/tmp/out", "format": "json"}}
        translation = translate(config, algorithm="CRR", env="CartPole-v1")
        assert setting(translation, "offline_data.input_").arguments == ("/tmp/out",)
        assert setting(translation, "offline_data.input_read_episodes") is True
        config["input_config"]["format"] = "parquet"
        translation = translate(config, algorithm="CRR", env="CartPole-v1")
        assert setting(translation, "offline_data.input_") == "/tmp/out"
        assert setting(translation, "offline_data.input_read_method") == "read_parquet"

    def test_without_an_environment_nobody_knows_the_spaces(self):
        assert translate({"input": "/tmp/out"}, algorithm="BC").refused

    @pytest.mark.parametrize("source", ["d4rl.hopper", {"sampler": 0.5, "/tmp/out": 0.5}, print])
    def test_what_only_the_old_readers_read(self, source):
        translation = translate({"input": source}, algorithm="CQL")
        assert translation.api_stack == "old"
        found = setting(translation, "offline_data.input_")
        assert found == (source if callable(source) else Readers(source))

    def test_a_registered_reader_is_code(self):
        from ray.tune.registry import register_input

        register_input("expert", print)
        assert translate({"input": "expert"}, algorithm="BC").api_stack == "old"
        assert translate({"input": "/expert"}, algorithm="BC").api_stack == "new"

    @pytest.mark.parametrize("algorithm", ["MARWIL", "BC"])
    def test_imitation_of_what_is_sampled_needs_the_old_stack(self, algorithm):
        several = {"multiagent": {"policies": {"a": None, "b": None}}}
        assert learns_on_old_stack(algorithm, {"input": "sampler"})
        assert learns_on_old_stack(algorithm, several)
        assert learns_on_old_stack(algorithm, {"input": "/tmp/out", "policies": {"a"}})
        assert not learns_on_old_stack(algorithm, {"input": "/tmp/out"})
        assert not learns_on_old_stack("PPO", several)

    @pytest.mark.parametrize(
        ("algorithm", "config", "where"),
        [
            ("CQL", {}, "input"),
            ("CQL", {"input": "/tmp/out", "policies": {"a", "b"}}, "multiagent.policies"),
            ("CRR", {"policies": {"a", "b"}}, "multiagent.policies"),
        ],
    )
    def test_what_no_stack_learns_from_is_told(self, algorithm, config, where):
        with pytest.raises(ConfigError) as told:
            learns_on_old_stack(algorithm, config)
        assert told.value.where == where

    def test_an_iteration_counts_what_is_trained_and_waits_for_no_samples(self):
        config = {"input": "/tmp/out", "min_sample_timesteps_per_iteration": 500}
        translation = translate(config, algorithm="CQL")
        assert setting(translation, "reporting.min_sample_timesteps_per_iteration") == 0
        assert setting(translation, "reporting.min_train_timesteps_per_iteration") == 500

    def test_others_than_offline_algorithms_read_on_the_old_stack(self):
        config = {"input": "/tmp/out", "evaluation_config": {"input": "sampler"}}
        translation = translate(config, algorithm="DQN", env="CartPole-v1")
        assert translation.api_stack == "old"
        assert setting(translation, "offline_data.input_") == Readers("/tmp/out")
        evaluation = setting(translation, "evaluation.evaluation_config")
        assert evaluation == {"input_": "sampler"}

    def test_todays_way_to_read_stays(self):
        config = {"input_": "/tmp/out", "input_read_method": "read_parquet"}
        translation = translate(config, algorithm="BC", env="CartPole-v1")
        assert setting(translation, "offline_data.input_") == "/tmp/out"

    def test_uris_are_read_by_ray_data(self):
        translation = translate({"input": "s3://b/out"}, algorithm="BC", env="CartPole-v1")
        assert setting(translation, "offline_data.input_read_method") == "read_json"

    def test_callbacks_write_json_as_before(self):
        config = {
            "output": "/tmp/out",
            "output_compress_columns": ["obs"],
            "output_max_file_size": 99,
            "callbacks": {"on_episode_end": print},
        }
        translation = translate(config, algorithm="PPO")
        assert "offline_data" not in translation.calls
        adapted = setting(translation, "callbacks.callbacks_class")
        assert adapted.recording == Recording("/tmp/out", ("obs",), 99)
        assert adapted.callbacks == {"on_episode_end": print}
        assert adapted.build().recording == adapted.recording

    def test_what_says_how_today_writes_is_written_so(self):
        config = {"output": "/tmp/out", "output_max_rows_per_file": 5, "output_max_file_size": 9}
        translation = translate(config, algorithm="PPO")
        assert setting(translation, "offline_data.output") == "/tmp/out"
        assert verdicts(translation)["$.output_max_file_size"] == "dropped"

    @pytest.mark.parametrize("output", ["dataset", print])
    def test_what_only_the_old_writers_write(self, output):
        translation = translate({"output": output}, algorithm="PPO")
        assert translation.api_stack == "old"
        assert setting(translation, "offline_data.output_write_episodes") is False

    def test_sampler(self):
        translation = translate({"input": "sampler"}, algorithm="PPO")
        assert verdicts(translation)["$.input"] == Verdict.DROPPED.value
