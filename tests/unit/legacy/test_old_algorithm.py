"""`ray.rllib.algorithms` of Ray 2.0 – 2.2, when configs were dicts."""

import rllib_compat as compat
from rllib_compat import legacy
from rllib_compat.legacy import lookup
from rllib_compat.trainer import defaults, subclasses

legacy.deactivate()  # to import it is to activate it
Algorithm = lookup("ray.rllib.algorithms.algorithm", "Algorithm")


def test_a_subclass_of_algorithm_that_takes_dicts_is_a_trainers():
    # `class MyAlgo(Algorithm)` of Ray 2.0 – 2.2; later ones have a config object, and are Ray's.
    class OfItsConfig(Algorithm):
        @classmethod
        def get_default_config(cls):
            return defaults.with_common_config({"num_sgd_iter": 3})

        def training_step(self):
            return super().training_step()

    class OfItsPolicy(Algorithm):
        def get_default_policy_class(self, config):
            return None

    class Todays(Algorithm):
        @classmethod
        def get_default_policy_class(cls, config):
            return None

    assert subclasses.own_defaults(OfItsConfig) == {"num_sgd_iter": 3}
    assert subclasses.has_steps(OfItsConfig)
    for made, of_ours in ((OfItsConfig, True), (OfItsPolicy, True), (Todays, False)):
        assert issubclass(made, compat.Trainer) is of_ours
        assert issubclass(made, Algorithm)


def test_default_configs_of_2_0_are_dicts_with_the_keys_of_dicts():
    config = lookup("ray.rllib.algorithms.ppo.ppo", "DEFAULT_CONFIG")
    assert (config["framework"], config["lambda"], config["input"]) == ("tf", 1.0, "sampler")
    assert config["multiagent"]["policies"] == {}
    assert not {"framework_str", "lambda_", "input_", "algo_class"} & set(config)
    config["num_sgd_iter"] = 7  # in place, as old code does
    again = lookup("ray.rllib.algorithms.ppo.ppo", "DEFAULT_CONFIG")
    assert again.pop("num_sgd_iter") == 7
    again["num_sgd_iter"] = 30
