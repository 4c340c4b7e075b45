"""Algorithms that Ray removed train again, from old configs, and are saved and restored."""

import pytest

import rllib_compat as compat
from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

OLD = {
    "A2C": {
        "num_workers": 1,
        "train_batch_size": 80,
        "microbatch_size": 40,
        "rollout_fragment_length": 20,
        "entropy_coeff_schedule": [[0, 0.01], [1000, 0.0]],
        "model": {"use_lstm": True, "lstm_cell_size": 8, "fcnet_hiddens": [8]},
        "min_iter_time_s": 0,
    },
    "ARS": {
        "num_workers": 0,
        "num_rollouts": 20,
        "rollouts_used": 10,
        "eval_prob": 0.5,
        "noise_size": 10_000,
        "model": {"fcnet_hiddens": []},
    },
    "ES": {
        "num_workers": 1,
        "train_batch_size": 80,
        "episodes_per_batch": 4,
        "eval_prob": 0.5,
        "noise_size": 10_000,
        "model": {"fcnet_hiddens": [8]},
    },
    "PG": {"num_workers": 0, "model": {"fcnet_hiddens": [8]}},
}


@pytest.mark.parametrize("name", OLD)
def test_an_old_config_trains_with_the_old_result_keys_and_goes_on_from_its_checkpoint(
    name, tmp_path
):
    from ray.rllib.algorithms.algorithm import Algorithm

    trainer = getattr(compat, f"{name}Trainer")(config={"env": "CartPole-v1", **OLD[name]})
    try:
        before = trainer.get_weights()["default_policy"]
        result = trainer.train()
        assert result["timesteps_total"] >= 80
        assert result["episode_reward_mean"] > 0
        stats = result["info"]["learner"]["default_policy"]["learner_stats"]
        if name in ("ES", "ARS"):
            assert {"update_ratio", "weights_norm", "grad_norm"} <= result["info"].keys()
            assert result["info"]["episodes_so_far"] == result["episodes_total"] > 0
        else:
            assert {"policy_loss", "cur_lr"} <= stats.keys()
        assert name != "A2C" or {"vf_loss", "policy_entropy", "entropy_coeff"} <= stats.keys()
        after = trainer.get_weights()["default_policy"]
        assert any((after[part] != before[part]).any() for part in before)
        path = trainer.save(str(tmp_path))
        trainer.restore(path)
        assert trainer.train()["timesteps_total"] > result["timesteps_total"]
    finally:
        trainer.stop()
    algorithm = Algorithm.from_checkpoint(path)
    assert type(algorithm).__name__ == name
    assert algorithm.train()["num_env_steps_sampled_lifetime"] > result["timesteps_total"]
    algorithm.stop()
