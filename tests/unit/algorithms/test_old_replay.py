"""What is replayed, and how DQN explores, is what it was in Ray 1.13.0, step by step.

`tests/legacy/losses/record_replay.py` made the numbers, with Ray 1.13.0 and torch.
"""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat import translate
from rllib_compat.algorithms import make_replay_buffer, replay_columns, use_legacy_learners
from rllib_compat.algorithms.dqn import DQNConfig
from rllib_compat.algorithms.off_policy import replay_settings
from rllib_compat.algorithms.replay import WEIGHTS, DrawnRows
from rllib_compat.algorithms.transitions import N_STEP
from rllib_compat.ray_versions import episodes
from rllib_compat.runtime import use_compat_env_runners
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.recordings import Recording, close
from tests.unit.algorithms.test_losses import RECORDS

pytestmark = OTHERS_WARNINGS

HERE = RECORDS / "replay"
RAY = "1.13.0"


def config_of(**told):
    """The config of a DQN of an old config, as a trainer makes it."""
    translation = translate({"num_workers": 0, **told}, algorithm="DQN", legacy_ray=RAY)
    config = translation.algorithm_config
    use_legacy_learners(config, translation.legacy_training)
    return replay_columns(config)


@pytest.mark.parametrize("n_step", [1, 3])
def test_targets_look_no_further_than_a_fragment(n_step):
    recorded = Recording(HERE / "n-step.npz")
    replay = make_replay_buffer(config_of(n_step=n_step, gamma=0.5)).of("default_policy")
    for index, chunk in enumerate(recorded.chunks()):
        steps = len(chunk["rewards"])
        episode = SingleAgentEpisode(
            observations=[np.float32([index, step]) for step in range(steps + 1)],
            actions=[step % 3 for step in range(steps)],
            rewards=[float(reward) for reward in chunk["rewards"]],
            terminated=bool(chunk["done"]),
            len_lookback_buffer=0,
        )
        before = len(replay)
        replay.add([episodes.to_numpy(episode)])
        kept = replay.get_state()["ring"]["rows"]
        for old, new in (
            ("obs", Columns.OBS),
            ("actions", Columns.ACTIONS),
            ("rewards", Columns.REWARDS),
            ("new_obs", Columns.NEXT_OBS),
            ("dones", Columns.TERMINATEDS),
        ):
            close(kept[new][before:], recorded.found[f"{n_step}.{index}.{old}"], 1e-6)
        assert (kept[N_STEP] == n_step).all()  # the exponent of gamma, for all of them


def test_steps_are_drawn_and_weighed_as_they_were():
    """What was drawn is random; how likely each step is, and what it counts, is not."""
    recorded = Recording(HERE / "priorities.npz")
    told = {name: float(value) for name, value in recorded.told().items()}
    names = {"alpha": "prioritized_replay_alpha", "beta": "prioritized_replay_beta"}
    old = {names[name]: told[name] for name in names} | {"prioritized_replay_eps": told["eps"]}
    buffer = {"capacity": int(told["capacity"]), **old}
    config = config_of(replay_buffer_config=buffer)
    replay, added = make_replay_buffer(config).of("default_policy"), 0
    for number in range(4):
        found = recorded.below(str(number))
        rows = np.arange(int(found["added"]) - added)
        added = int(found["added"])
        replay.keep({Columns.OBS: rows})
        weights = replay._priorities.weights(found["places"], config.replay_buffer_config["beta"])
        close(weights, found["weights"], 1e-6)
        replay.prioritize(found["errors"], DrawnRows(found["places"], added))
        powers = replay.get_state()["priorities"]["powers"][: len(replay)]
        close(powers, found["powers"], 1e-5)
    assert WEIGHTS in replay.sample(3)[0]


class Walk(gymnasium.Env):
    """An episode has seven steps."""

    observation_space = gymnasium.spaces.Box(-100.0, 100.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    schedule, explored = None, []

    def __init__(self, _=None):
        self.explored.clear()

    def reset(self, **_):
        self.at = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.at += 1
        self.explored.append(float(Walk.schedule.get_current_value()))
        return np.full(2, self.at, np.float32), 1.0, self.at == 7, False, {}


def test_epsilon_falls_step_by_step_as_it_did():
    recorded = Recording(HERE / "epsilon.npz")
    exploration = {n: v for n, v in recorded.told().items() if n != "type"}
    config = config_of(exploration_config={"type": "EpsilonGreedy", **exploration})
    use_compat_env_runners(config.environment(Walk))
    runner = config.env_runner_cls(config=config, worker_index=0)
    Walk.schedule = runner.module.epsilon_schedule
    for steps in recorded.found["fragments"]:
        runner.sample(num_timesteps=int(steps))
        runner.get_metrics()
    runner.stop()
    close(Walk.explored, recorded.found["epsilons"], 1e-6)


def test_what_no_trainer_trains_replays_as_today():
    today, old = DQNConfig(), config_of()
    assert replay_settings(today)["first"] is None
    assert replay_settings(old) == {
        "alpha": 0.6,
        "n_step": 1,
        "gamma": 0.99,
        "offset": 1e-6,
        "first": 1.0,
        "waits": False,
    }
