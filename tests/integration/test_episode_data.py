"""What environments say of their own is in the trial's files, whoever samples it."""

import json
import sys
from collections import Counter

import gymnasium.spaces as spaces
import numpy as np
import pytest
from ray import cloudpickle
from ray.rllib.env.multi_agent_env import MultiAgentEnv

import rllib_compat as compat
from rllib_compat.episode_data import EpisodeRecorder, read_episodes
from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.newest, pytest.mark.usefixtures("one_ray")]

# Workers can't import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SMALL = {"train_batch_size": 200, "sgd_minibatch_size": 100, "num_sgd_iter": 1}
SMALL |= {"model": {"fcnet_hiddens": [8]}, "rollout_fragment_length": 50}


class Plant:
    """Keeps what it says in a file of its own, too; the array is the same one at every step."""

    observation_space, action_space = spaces.Box(0, 100, (1,)), spaces.Discrete(2)

    def __init__(self, config):
        self.own = config["own"] / f"{config.worker_index}-{config.vector_index}-{id(self)}"
        self.number, self.place = 0, np.zeros(2)

    def reset(self):
        self.number, self.said = self.number + 1, []
        return [0.0]

    def step(self, action):
        self.said.append(0.1 * len(self.said) * self.number)
        self.place += self.said[-1]
        info = {
            "media": {"place": self.place},
            "data": {"running": {"speed": self.said[-1]}, "final": {"articles": len(self.said)}},
        }
        over = len(self.said) == 5 + self.number % 20
        if over:
            with self.own.open("a") as file:
                file.write(json.dumps(self.said) + "\n")
        return [len(self.said)], 1.0, over, info


@pytest.mark.matrix
@pytest.mark.parametrize(("kind", "stack"), [("jsonl", "new"), ("parquet", "old")])
def test_the_files_hold_what_environments_said_once(make, tmp_path, kind, stack):
    (tmp_path / "own").mkdir()
    trainer = make(
        env=Plant,
        config={
            **SMALL,
            "env_config": {"own": tmp_path / "own"},
            "num_workers": 2,
            "num_envs_per_worker": 2,
            "callbacks": [compat.DefaultCallbacks, EpisodeRecorder(format=kind)],
            "evaluation_interval": 2,
            "evaluation_num_episodes": 3,
            # Only the old API stack explores like that.
            **({"exploration_config": {"type": "Random"}} if stack == "old" else {}),
        },
    )
    for _ in range(3):
        result = trainer.train()
    assert trainer.translation.api_stack == stack
    assert "recorded_episode" not in result["episode_media"]
    trainer.evaluate()
    trainer.stop()
    recorded = list(read_episodes(trainer.logdir))
    said = Counter(
        tuple(json.loads(line)) for file in (tmp_path / "own").iterdir() for line in file.open()
    )
    found = Counter(tuple(e["running"]["speed"]["values"]) for e in recorded)
    assert found <= said
    # What was played and not asked for: the rest of an evaluation's last round.
    assert sum((said - found).values()) <= 4
    evaluated = Counter(e["iteration"] for e in recorded if e["evaluation"])
    assert set(evaluated) == {2, 4}
    assert min(evaluated.values()) >= 3
    assert {e["worker"] for e in recorded if not e["evaluation"]} == {1, 2}
    for episode in recorded:
        assert episode["length"] == episode["reward"] == episode["final"]["articles"]
        place = np.array(episode["media"]["place"])
        assert place.shape == (episode["length"], 2)
        steps = episode["running"]["speed"]["values"][1:]
        np.testing.assert_allclose(np.diff(place[:, 0]), steps, atol=1e-9)
    assert result["custom_metrics"]["articles_max"] == max(
        e["length"] for e in recorded if not e["evaluation"]
    )


class Turns(MultiAgentEnv):
    """One of two acts at a time; the second one twice as often."""

    observation_space = spaces.Dict({n: spaces.Box(0, 100, (1,)) for n in ("a", "b")})
    action_space = spaces.Dict({n: spaces.Discrete(2) for n in ("a", "b")})

    def __init__(self, config):
        super().__init__()
        self.info = {"fuel": 0}

    def reset(self):
        self.at = 0
        return {"a": [0.0]}

    def step(self, actions):
        self.at += 1
        self.info["fuel"] = self.at  # the same dict, every time
        turn = "a" if self.at % 3 == 0 else "b"
        over = self.at == 9
        dones = {"a": over, "b": over, "__all__": over}
        return {turn: [self.at]}, {turn: self.at}, dones, {turn: self.info}


def test_each_agent_has_its_own_data_of_the_steps_that_it_took(make):
    trainer = make(
        env=Turns,
        config={
            **SMALL,
            # Ray 2.40 can't go on with an episode that was cut while an agent waits.
            "rollout_fragment_length": 45,
            "train_batch_size": 180,
            "sgd_minibatch_size": 90,
            "num_workers": 0,
            "multiagent": {
                "policies": {
                    n: (None, Turns.observation_space[n], spaces.Discrete(2), {}) for n in "ab"
                },
                "policy_mapping_fn": lambda agent, *_, **__: agent,
            },
            "callbacks": EpisodeRecorder(
                running=["fuel"],
                final=lambda env, agent: {"at": env.at, "who": agent},
                media=False,
                max_values=4,
            ),
        },
    )
    result = trainer.train()
    episodes = list(read_episodes(trainer.logdir))
    assert len(episodes) == result["episodes_this_iter"] >= 20
    agents = episodes[0]["agents"]
    assert {n: d["policy"] for n, d in agents.items()} == {"a": "a", "b": "b"}
    assert agents["a"]["running"]["fuel"]["values"] == [3, 6, 9]
    assert agents["b"]["running"]["fuel"] == {
        "count": 6,
        "values": [1, 2, 4, 5],
        "mean": 4.5,
        "sum": 27,
        "min": 1,
        "max": 8,
    }
    assert agents["a"]["final"] == {"at": 9, "who": "a"}
    assert agents["a"]["media"] == {}
    assert result["custom_metrics"]["b/fuel_avg_mean"] == 4.5
