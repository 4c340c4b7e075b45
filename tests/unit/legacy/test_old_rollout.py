"""`ray.rllib.rollout`, as scripts of their own loops import it."""

import pickle
from types import SimpleNamespace

import gymnasium
import numpy as np

from rllib_compat import legacy
from rllib_compat.adapters import EnvSettings, adapt_env
from rllib_compat.legacy import lookup

legacy.deactivate()  # to import it is to activate it

rollout = lookup("ray.rllib", "rollout")


class FiveSteps:
    observation_space = gymnasium.spaces.Box(0, 9, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, config):
        self.t = config["start"]

    def reset(self):
        self.t = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.t += 1
        return np.full(1, self.t, np.float32), float(action), self.t == 5, {"t": self.t}


class Trainer:
    """Acts always the same, and counts in its state."""

    def __init__(self):
        self.config = {"env_config": {"start": 0}, "explore": False}
        env = adapt_env(EnvSettings(FiveSteps))
        self.algorithm = SimpleNamespace(config=SimpleNamespace(env=env))

    def compute_single_action(self, observation, state, *_, policy_id, full_fetch, explore):
        assert (policy_id, full_fetch, explore) == ("default_policy", True, False)
        return 1, [(state or [0])[0] + 1], {}


def test_old_scripts_find_it_in_both_places():
    for place in ("ray.rllib.rollout", "ray.rllib.evaluate"):
        assert lookup(place, "rollout") is rollout.rollout
        assert lookup(place, "DefaultMapping") is rollout.DefaultMapping


def test_a_trainer_plays_and_its_episodes_are_saved(tmp_path, capsys):
    with rollout.RolloutSaver(tmp_path / "out.pkl", save_info=True) as saver:
        rollout.rollout(Trainer(), "any", 0, 2, saver)
    assert capsys.readouterr().out == "Episode #0: reward: 5.0\nEpisode #1: reward: 5.0\n"
    first, second = pickle.loads((tmp_path / "out.pkl").read_bytes())
    assert len(first) == len(second) == 5
    assert first[-1][1:] == [1, np.array([5.0]), 1.0, True, {"t": 5}]


def test_loops_of_ones_own_save_step_by_step(tmp_path):
    states = rollout.DefaultMapping(lambda agent: [agent])
    assert states["a"] == ["a"]
    with rollout.RolloutSaver(str(tmp_path / "out.pkl")) as saver:
        steps = episodes = 0
        while rollout.keep_going(steps, 0, episodes, 2):
            saver.begin_rollout()
            saver.append_step(0, 1, 2, 3.0, True, {})
            saver.end_rollout()
            steps, episodes = steps + 1, episodes + 1
    assert pickle.loads((tmp_path / "out.pkl").read_bytes()) == [[[0, 1, 2, 3.0, True]]] * 2
