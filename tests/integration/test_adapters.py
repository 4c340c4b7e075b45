"""Code of its time around the Trainer: leagues, recordings, and environments of other kinds."""

import json
import queue
import sys
from contextlib import suppress

import gymnasium.spaces as spaces
import numpy as np
import pytest
import ray
from ray import cloudpickle
from ray.rllib.env.external_env import ExternalEnv
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.logger import LoggerCallback

import rllib_compat as compat
from rllib_compat import gym, tune
from rllib_compat.episode_data import EpisodeRecorder, read_episodes
from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

# Workers can't import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SMALL = {"train_batch_size": 200, "sgd_minibatch_size": 50, "num_sgd_iter": 1}
SMALL |= {"model": {"fcnet_hiddens": [8]}, "num_workers": 0}


GAMES = {"champion": "CartPole-v1", "rival1": "MountainCarContinuous-v0", "rival2": "CartPole-v1"}


class Arena(MultiAgentEnv):
    """The champion's game beside that of the rival whose turn it is; old API throughout."""

    def __init__(self, config):
        self.reinit(config)

    def reinit(self, config):
        self.players = [gym.make(GAMES[name]) for name in ("champion", config["rival"])]

    @property
    def observation_space(self):
        return spaces.Dict({str(i): p.observation_space for i, p in enumerate(self.players)})

    @property
    def action_space(self):
        return spaces.Dict({str(i): p.action_space for i, p in enumerate(self.players)})

    def reset(self):
        self.steps = 0
        return {str(i): player.reset() for i, player in enumerate(self.players)}

    def step(self, action_dict):
        self.steps += 1
        obs, rewards, dones, infos = {}, {}, {}, {}
        for name, action in action_dict.items():
            result = self.players[int(name)].step(action)
            obs[name], rewards[name], dones[name], infos[name] = result
        over = self.steps == 20 or any(dones.values())
        return obs, rewards, {**dict.fromkeys(obs, over), "__all__": over}, infos


class League(compat.DefaultCallbacks):
    """Sends in a new rival after each iteration; workers take it in at the end of an episode."""

    def __init__(self, legacy_callbacks_dict=None):
        super().__init__(legacy_callbacks_dict)
        self.rival, self.due = "rival1", False

    def on_train_result(self, *, trainer, result, **kwargs):
        if trainer.get_policy("rival2") is None:
            player = gym.make(GAMES["rival2"])
            trainer.add_policy(
                policy_id="rival2",
                policy_cls=type(trainer.get_policy("champion")),
                policy_mapping_fn=lambda agent_id, episode, worker, **kw: (
                    "champion" if agent_id == "0" else "rival2"
                ),
                policies_to_train=["champion"],
                observation_space=player.observation_space,
                action_space=player.action_space,
            )

            def flag(worker):
                worker.callbacks.rival, worker.callbacks.due = "rival2", True

            trainer.workers.foreach_worker(flag)

    def on_episode_end(self, *, worker, episode, **kwargs):
        episode.custom_metrics["rival"] = int(self.rival[-1])
        if self.due:

            def change(env, context):
                context["rival"] = self.rival
                env.reinit(context)

            worker.foreach_env_with_context(change)
            worker.set_policies_to_train(["champion"])
            self.due = False


def test_a_league_brings_in_new_policies_and_other_games(make):
    policies = {
        name: (
            None,
            gym.make(GAMES[name]).observation_space,
            gym.make(GAMES[name]).action_space,
            {},
        )
        for name in ("champion", "rival1")
    }
    trainer = make(
        env=Arena,
        config={
            **SMALL,
            "num_workers": 1,
            "env_config": {"rival": "rival1"},
            "callbacks": League,
            "multiagent": {
                "policies": policies,
                "policy_mapping_fn": lambda agent_id, episode, worker, **kw: (
                    "champion" if agent_id == "0" else "rival1"
                ),
                "policies_to_train": ["champion"],
                "policy_map_capacity": 2,
            },
        },
    )
    assert trainer.train()["custom_metrics"]["rival_mean"] == 1
    before = trainer.get_weights()
    result = trainer.train()
    assert set(result["policy_reward_mean"]) >= {"champion", "rival2"}
    assert result["custom_metrics"]["rival_max"] == 2
    after = trainer.get_weights()
    changed = {
        policy: any(np.any(before[policy][name] != after[policy][name]) for name in before[policy])
        for policy in before
    }
    assert changed == {"champion": True, "rival1": False, "rival2": False}


class Telling:
    """Says by its infos what is to be logged."""

    observation_space, action_space = spaces.Box(-1, 100, (1,)), spaces.Discrete(2)

    def __init__(self, config):
        pass

    def reset(self):
        self.at = 0
        return [0.0]

    def step(self, action):
        self.at += 1
        data = {"running": {"speed": 2.0 * self.at}, "final": {"distance": self.at}}
        return [self.at], 1.0, self.at == 10, {"media": {"trace": [self.at, 7]}, "data": data}


class Notes(compat.DefaultCallbacks):
    """Notes what infos say, in all the places that an episode has for it."""

    def on_episode_start(self, *, episode, **kwargs):
        episode.user_data["said"] = []
        episode.media["notes"] = {"trace": []}

    def on_episode_step(self, *, worker, base_env, episode, env_index, **kwargs):
        info = episode.last_info_for()
        episode.user_data["said"].append(info["data"])
        episode.media["notes"]["trace"].append(info["media"]["trace"])

    def on_episode_end(self, *, worker, base_env, policies, episode, env_index, **kwargs):
        said = episode.user_data["said"]
        speeds = np.array([data["running"]["speed"] for data in said])
        way = said[-1]["final"]["distance"]
        episode.custom_metrics.update(own_speed=speeds.mean(), own_way=way)
        episode.hist_data.update(own_speed=list(speeds), own_way=[way])


class NotesOfIterations(LoggerCallback):
    """Writes the notes of an iteration's episodes, and those of its evaluation."""

    def __init__(self, folder):
        self.folder = folder

    def log_trial_result(self, iteration, trial, result):
        newest = result["episode_media"]["notes"][-result["episodes_this_iter"] :]
        evaluated = result["evaluation"]["episode_media"]["notes"]
        file = self.folder / f"{result['timesteps_total']}.json"
        file.write_text(json.dumps({"newest": newest, "evaluated": evaluated}))


def test_what_callbacks_keep_of_an_episode_reaches_tunes_loggers(tmp_path):
    (tmp_path / "data").mkdir()
    trials = tune.run(
        "PPO",
        config={
            **SMALL,
            "env": Telling,
            "callbacks": [Notes, EpisodeRecorder()],
            "evaluation_interval": 1,
            "evaluation_num_episodes": 2,
        },
        stop={"training_iteration": 1},
        callbacks=[NotesOfIterations(tmp_path / "data")],
        local_dir=str(tmp_path),
        verbose=0,
    ).trials
    result = trials[0].last_result
    for mean, most in (("speed_avg_mean", "distance_max"), ("own_speed_mean", "own_way_max")):
        assert result["custom_metrics"][mean] == 11.0
        assert result["custom_metrics"][most] == 10
    assert result["hist_stats"]["own_way"] == [10] * 20
    assert result["hist_stats"]["own_speed"] == [2.0 * at for at in range(1, 11)] * 20
    notes = json.loads((tmp_path / "data" / "200.json").read_text())
    assert (len(notes["newest"]), len(notes["evaluated"])) == (20, 2)
    assert notes["newest"][0]["trace"][:2] == [[1, 7], [2, 7]]
    # In the trial's folder in its storage, and not where its process happens to work.
    (folder,) = tmp_path.rglob("episode_data")
    assert (folder.parent / "result.json").exists()
    recorded = [(e["evaluation"], e["media"]) for e in read_episodes(folder)]
    assert [media for _, media in recorded] == [*notes["evaluated"], *notes["newest"]]
    assert sum(evaluation for evaluation, _ in recorded) == 2


def test_what_one_trainer_records_another_one_learns_from(make, tmp_path):
    out = tmp_path / "out"
    trainer = make(
        env="CartPole-v1",
        config={**SMALL, "num_workers": 1, "output": str(out), "horizon": 30},
    )
    trainer.train()
    lines = [json.loads(line) for file in out.glob("*.json") for line in file.open()]
    assert {line["type"] for line in lines} == {"SampleBatch"}
    assert sum(len(line["rewards"]) for line in lines) == 200
    config = {"input": str(out), "train_batch_size": 64, "model": {"fcnet_hiddens": [8]}}
    config |= {"num_workers": 0, "input_evaluation": ["is", "wis"], "evaluation_interval": 1}
    learner = make(
        "MARWILTrainer",
        env="CartPole-v1",
        config={**config, "evaluation_num_episodes": 2, "evaluation_config": {"input": "sampler"}},
    )
    before = learner.get_weights()["default_policy"]
    result = learner.train()
    after = learner.get_weights()["default_policy"]
    assert any(np.any(before[name] != after[name]) for name in before)
    assert result["evaluation"]["episodes_this_iter"] == 2

    mixed = make(
        "DQNTrainer",
        env="CartPole-v1",
        config={
            "input": {"sampler": 0.5, str(out): 0.5},
            "num_workers": 0,
            "timesteps_per_iteration": 50,
            "learning_starts": 20,
            "train_batch_size": 32,
            "output": "logdir",
        },
    )
    assert mixed.translation.api_stack == "old"
    assert mixed.train()["training_iteration"] == 1


class Vector:
    """Three counters in one object (Ray 0.8)."""

    observation_space, action_space, num_envs = Telling.observation_space, spaces.Discrete(2), 3

    def __init__(self, config):
        self.at = [0] * self.num_envs

    def vector_reset(self):
        return [self.reset_at(i) for i in range(self.num_envs)]

    def reset_at(self, index):
        self.at[index] = 0
        return np.zeros(1)

    def vector_step(self, actions):
        self.at = [at + 1 for at in self.at]
        obs = [np.array([at]) for at in self.at]
        return obs, [1.0] * 3, [at == 4 + i for i, at in enumerate(self.at)], [{}] * 3


class Simulator(ExternalEnv):
    """Asks for actions; every second episode is played by itself."""

    def __init__(self, config):
        super().__init__(spaces.Discrete(2), Telling.observation_space)

    def run(self):
        with suppress(queue.Empty):  # minutes after the trainer has stopped
            self.play()

    def play(self):
        while True:
            for ask in (self.get_action, lambda e, o: self.log_action(e, o, 1)):
                episode = self.start_episode()
                for t in range(5):
                    ask(episode, np.array([t], np.float32))
                    self.log_returns(episode, 1.0)
                self.end_episode(episode, np.array([5], np.float32))


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("env", "lengths"), [(Vector, {4, 5, 6}), (Simulator, {5})], ids=["vector", "external"]
)
def test_environments_of_other_kinds_train(make, env, lengths):
    result = make(env=env, config=SMALL).train()
    assert set(result["hist_stats"]["episode_lengths"]) == lengths
    assert set(result["hist_stats"]["episode_reward"]) == lengths
    assert 200 <= result["timesteps_this_iter"] < 210


def test_evaluation_functions_get_trainer_and_workers(make):
    def evaluate(trainer, workers):
        from rllib_compat.legacy import lookup

        metrics = "ray.rllib.evaluation.metrics"
        collect_episodes = lookup(metrics, "collect_episodes")
        summarize_episodes = lookup(metrics, "summarize_episodes")

        remote = workers.remote_workers()
        for worker in remote:
            ray.get(worker.foreach_env.remote(lambda env: env.reset()))
            ray.get(worker.sample.remote())
        episodes, _ = collect_episodes(remote_workers=remote)
        return {**summarize_episodes(episodes), "iteration": trainer.iteration}

    trainer = make(
        env=Telling,
        config={
            **SMALL,
            "evaluation_interval": 1,
            "evaluation_num_workers": 1,
            "custom_eval_function": evaluate,
        },
    )
    evaluation = trainer.train()["evaluation"]
    assert evaluation["episode_len_mean"] == 10
    assert evaluation["episodes_this_iter"] > 0
    assert evaluation["iteration"] == 0


def test_learners_tell_callbacks_what_they_learn_from(make):
    class Halve(compat.DefaultCallbacks):
        def on_postprocess_trajectory(self, *, postprocessed_batch, **kwargs):
            postprocessed_batch["rewards"] = postprocessed_batch["rewards"] / 2

        def on_learn_on_batch(self, *, policy, train_batch, result, **kwargs):
            result["largest_reward"] = float(train_batch["rewards"].max())

    result = make(env=Telling, config={**SMALL, "callbacks": Halve}).train()
    stats = result["info"]["learner"]["default_policy"]["learner_stats"]
    assert stats["largest_reward"] == 0.5
    assert result["episode_reward_mean"] == 10
