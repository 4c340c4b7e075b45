"""APEX and APEX_DDPG of old configs learn from shards, outlive a shard, and go on."""

import numpy as np
import pytest
import ray
import tree

from rllib_compat.ray_versions import env_runners, learners
from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

OLD = {
    "env": "CartPole-v1",
    "num_workers": 2,
    "optimizer": {"num_replay_buffer_shards": 2, "max_weight_sync_delay": 40},
    "buffer_size": 600,
    "learning_starts": 60,
    "train_batch_size": 16,
    "rollout_fragment_length": 20,
    "training_intensity": 1,
    "target_network_update_freq": 64,
    "timesteps_per_iteration": 200,
    "min_iter_time_s": 0,
    "hiddens": [8],
    "model": {"fcnet_hiddens": [8]},
    "store_buffer_in_checkpoints": True,
}


@pytest.mark.slow("workers and shards are processes of their own, and one is started again")
def test_apex_learns_from_shards_goes_on_from_its_checkpoint_and_outlives_a_shard(
    make, tmp_path, caplog
):
    trainer = make("ApexTrainer", config=OLD)
    before = trainer.get_weights()["default_policy"]
    for _ in range(2):
        result = trainer.train()
    after = trainer.get_weights()["default_policy"]
    assert any((after[part] != before[part]).any() for part in before)
    assert result["timesteps_total"] >= 400
    assert result["info"]["num_weight_syncs"] >= 2
    assert result["info"]["num_target_updates"] > 0
    told = result["info"]["replay_shard_0"]
    assert told["capacity"] == 300
    assert told["num_calls_update_priorities"] > 0
    env_runners.forget_requests(trainer.algorithm.env_runner_group, 10.0)
    held = trainer.algorithm.replay.get_state()
    for shard in held["shards"]:
        powers = shard["replay"]["priorities"]["powers"]
        assert len(np.unique(powers[powers > 0])) > 10  # errors of workers and the learner
    trained = result["apex"]["num_env_steps_trained"]
    assert 0.4 < trained / result["timesteps_total"] <= 1.0
    path = trainer.save(str(tmp_path))

    ray.kill(trainer.algorithm.replay.actors[0])
    trainer.train()
    assert "shard of the replay buffer has died" in caplog.text

    trainer.restore(path)
    now = trainer.algorithm.replay.get_state()
    tree.map_structure(np.testing.assert_array_equal, now, held)
    again = trainer.train()
    assert again["timesteps_total"] > result["timesteps_total"]
    assert again["apex"]["num_env_steps_trained"] > trained


@pytest.mark.nightly
def test_apex_ddpg_fills_shards_learns_from_them_and_goes_on_from_its_checkpoint(make, tmp_path):
    layers = {"actor_hiddens": [8], "critic_hiddens": [8]}
    old = {key: value for key, value in OLD.items() if key not in ("hiddens", "model")}
    trainer = make("ApexDDPGTrainer", config={**old, **layers, "env": "Pendulum-v1"})
    before = trainer.get_weights()["default_policy"]
    for _ in range(2):
        result = trainer.train()
    after = trainer.get_weights()["default_policy"]
    for network in ("pi", "q"):  # the actor's learned, and the critic's
        changed = [name for name in before if name.startswith(f"net.{network}.")]
        assert any((after[name] != before[name]).any() for name in changed)
    assert result["timesteps_total"] >= 400
    told = result["info"]["learner"]["default_policy"]["learner_stats"]
    assert np.isfinite([told["actor_loss"], told["critic_loss"]]).all()
    env_runners.forget_requests(trainer.algorithm.env_runner_group, 10.0)
    held = trainer.algorithm.replay.get_state()
    assert len(held["shards"]) == 2
    for shard in held["shards"]:
        powers = shard["replay"]["priorities"]["powers"]
        assert len(np.unique(powers[powers > 0])) > 10  # errors of the learner
    states = _states_of_optimizers(trainer)
    assert all(states.values())
    path = trainer.save(str(tmp_path))
    trainer.train()

    trainer.restore(path)
    now = trainer.algorithm.replay.get_state()
    tree.map_structure(np.testing.assert_array_equal, now, held)
    tree.map_structure(np.testing.assert_array_equal, _states_of_optimizers(trainer), states)
    tree.map_structure(
        np.testing.assert_array_equal, trainer.get_weights()["default_policy"], after
    )
    again = trainer.train()
    assert again["timesteps_total"] > result["timesteps_total"]


def _states_of_optimizers(trainer):
    """Copies of the moments of both, by the numbers of their parameters."""
    learner = learners.local_learner(trainer.algorithm)
    found = {}
    for name in ("actor", "critic"):
        state = learner.get_optimizer("default_policy", name).state_dict()["state"]
        found[name] = {
            number: {part: np.array(moment) for part, moment in slot.items()}
            for number, slot in state.items()
        }
    return found
