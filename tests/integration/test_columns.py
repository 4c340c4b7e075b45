"""DQN and SAC of old configs replay columns, and go on with what they have replayed."""

import gymnasium as gym
import numpy as np
import pytest
import tree
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from rllib_compat.algorithms import MultiAgentReplayBuffer
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
def test_it_learns_from_columns_and_a_restored_one_has_them(name, make, tmp_path):
    def made():
        config = {**OLD[name], **SHORT}
        return make(f"{name}Trainer", config=config, replay_columns=True)

    trainer = made()
    before = trainer.get_weights()["default_policy"]
    for _ in range(3):
        result = trainer.train()
    after = trainer.get_weights()["default_policy"]
    assert any((after[part] != before[part]).any() for part in before)
    stats = result["info"]["learner"]["default_policy"]["learner_stats"]
    assert "td_error" not in stats
    replay = trainer.algorithm.replay
    assert isinstance(replay, MultiAgentReplayBuffer)
    assert len(replay) == 100
    powers = replay.of("default_policy").get_state()["priorities"]
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
    again = made()
    again.restore(path)
    tree.map_structure(np.testing.assert_array_equal, again.algorithm.replay.get_state(), held)
    assert again.train()["timesteps_total"] > result["timesteps_total"]


SEEN, DONE = gym.spaces.Box(-1, 1, (3,), np.float32), gym.spaces.Discrete(2)


class ThreeAgents(MultiAgentEnv):
    """As people wrote them: agents are numbers, and `step` returns four things."""

    def __init__(self, config=None):
        super().__init__()
        self.observation_space, self.action_space = SEEN, DONE

    def reset(self):
        self.left = 9
        return {agent: np.zeros(3, np.float32) for agent in range(3)}

    def step(self, actions):
        self.left -= 1
        seen = {agent: np.full(3, 0.1, np.float32) for agent in actions}
        rewards = {agent: float(agent) for agent in actions}
        return seen, rewards, {"__all__": not self.left}, {}


def test_several_policies_learn_from_columns_and_frozen_ones_keep_nothing(make, tmp_path):
    spaces = (None, SEEN, DONE, {})
    agents = {
        "policies": {"hero": spaces, "other": spaces, "frozen": spaces},
        "policy_mapping_fn": lambda agent: ["hero", "other", "frozen"][agent],
        "policies_to_train": ["hero", "other"],
    }
    old = {**SHORT, "env": ThreeAgents, "n_step": 3, "hiddens": [8], "multiagent": agents}
    trainer = make("DQNTrainer", config=old)
    before = trainer.get_weights()
    for _ in range(3):
        result = trainer.train()
    after = trainer.get_weights()
    for policy in agents["policies"]:
        changed = any((after[policy][k] != before[policy][k]).any() for k in after[policy])
        assert changed == (policy != "frozen"), policy
    replay = trainer.algorithm.replay
    assert isinstance(replay, MultiAgentReplayBuffer)
    assert (len(replay), len(replay.of("hero"))) == (200, 100)
    held = replay.get_state()
    path = trainer.save(str(tmp_path))
    again = make("DQNTrainer", config=old)
    again.restore(path)
    for policy in ("hero", "other"):
        tree.map_structure(
            np.testing.assert_array_equal,
            again.algorithm.replay.of(policy).get_state(),
            held[policy],
        )
    assert again.train()["timesteps_total"] > result["timesteps_total"]


def test_agents_whose_ids_are_numbers_can_be_saved_with_episodes_too(make, tmp_path):
    spaces = (None, SEEN, DONE, {})
    agents = {"policies": {"one": spaces}, "policy_mapping_fn": lambda agent: "one"}
    few = {"learning_starts": 5, "timesteps_per_iteration": 8, "train_batch_size": 2}
    old = {**SHORT, **few, "env": ThreeAgents, "multiagent": agents}
    del old["store_buffer_in_checkpoints"]
    trainer = make("DQNTrainer", config=old, replay_columns=False)
    trainer.train()
    assert trainer.save(str(tmp_path))
