"""APEX of old configs learns from shards, outlives a shard, and goes on."""

import numpy as np
import pytest
import ray
import tree

import rllib_compat as compat
from rllib_compat import ray_versions
from tests.marks import TRAINERS

CPUS = 2
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


@pytest.mark.matrix
def test_apex_learns_from_shards_goes_on_from_its_checkpoint_and_outlives_a_shard(tmp_path, caplog):
    trainer = compat.ApexTrainer(config=OLD)
    try:
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
        ray_versions.forget_requests(trainer.algorithm.env_runner_group, 10.0)
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
    finally:
        trainer.stop()
