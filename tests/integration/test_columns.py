"""DQN and SAC of old configs replay columns, and go on with what they have replayed."""

import numpy as np
import pytest
import tree

import rllib_compat as compat
from rllib_compat.algorithms.replay import TransitionReplay
from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

OLD = {
    "DQN": {"env": "CartPole-v1", "n_step": 3, "prioritized_replay": True, "hiddens": [8]},
    "SAC": {
        "env": "Pendulum-v1",
        "horizon": 20,
        "prioritized_replay": False,
        "Q_model": {"fcnet_hiddens": [8]},
        "policy_model": {"fcnet_hiddens": [8]},
    },
}
SHORT = {
    "num_workers": 0,
    "learning_starts": 20,
    "buffer_size": 100,
    "train_batch_size": 8,
    "rollout_fragment_length": 4,
    "timesteps_per_iteration": 60,
    "min_iter_time_s": 0,
    "store_buffer_in_checkpoints": True,
}


@pytest.mark.matrix
@pytest.mark.parametrize("name", OLD)
def test_it_learns_from_columns_and_a_restored_one_has_them(name, tmp_path):
    def made():
        return getattr(compat, f"{name}Trainer")({**OLD[name], **SHORT}, replay_columns=True)

    trainer = made()
    try:
        before = trainer.get_weights()["default_policy"]
        for _ in range(3):
            result = trainer.train()
        after = trainer.get_weights()["default_policy"]
        assert any((after[part] != before[part]).any() for part in before)
        stats = result["info"]["learner"]["default_policy"]["learner_stats"]
        assert "td_error" not in stats
        replay = trainer.algorithm.replay
        assert isinstance(replay, TransitionReplay)
        assert len(replay) == 100
        powers = replay.get_state()["priorities"]
        assert (powers is not None) == (name == "DQN")
        if powers is not None:
            assert len(np.unique(powers["powers"])) > 5  # the learner's errors came back
        learned = trainer.algorithm.learner_group.get_weights()["default_policy"]
        acting = trainer.algorithm.env_runner.module.get_state()
        assert acting
        for part, value in acting.items():
            np.testing.assert_array_equal(value, learned[part], err_msg=part)
        path = trainer.save(str(tmp_path))
        held = replay.get_state()
    finally:
        trainer.stop()
    again = made()
    try:
        again.restore(path)
        tree.map_structure(np.testing.assert_array_equal, again.algorithm.replay.get_state(), held)
        assert again.train()["timesteps_total"] > result["timesteps_total"]
    finally:
        again.stop()
