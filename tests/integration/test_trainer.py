"""`compat.Trainer` on a running Ray."""

import copy
import json
import traceback
from pathlib import Path
from types import SimpleNamespace

import gymnasium.spaces as spaces
import numpy as np
import pytest

import rllib_compat as compat
from rllib_compat import legacy
from rllib_compat.errors import LegacyEnvError
from rllib_compat.execution.rollout_ops import synchronous_parallel_sample
from rllib_compat.execution.train_ops import train_one_step
from rllib_compat.legacy import lookup
from rllib_compat.trainer import build_trainer, policy_class
from tests.legacy.cases import find
from tests.marks import TRAINERS

legacy.deactivate()  # to import it is to activate it
pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

SMALL = {"train_batch_size": 200, "sgd_minibatch_size": 50, "num_sgd_iter": 1}
SMALL |= {"model": {"fcnet_hiddens": [8]}, "num_workers": 0}


@pytest.mark.matrix
def test_a_config_of_ray_0_8_trains_saves_restores_and_acts(make):
    # Functions of this module could not be imported by the env runners; these travel by value.
    def count_steps(info):
        info["episode"].user_data["steps"] = info["episode"].user_data.get("steps", 0) + 1

    def tell(info):
        episode = info["episode"]
        episode.custom_metrics.update(n=episode.length, steps=episode.user_data["steps"])

    trainer = make(
        "Trainer",
        config={
            "env": "CartPole-v0",
            "num_workers": 1,
            "sample_batch_size": 50,
            "train_batch_size": 400,
            "sgd_minibatch_size": 64,
            "num_sgd_iter": 4,
            "use_pytorch": False,
            "model": {"fcnet_hiddens": [32, 32]},
            "observation_filter": "MeanStdFilter",
            "horizon": 15,
            "callbacks": {"on_episode_step": count_steps, "on_episode_end": tell},
        },
    )
    result = trainer.train()
    assert result["episode_len_mean"] == result["episode_reward_mean"] <= 15
    metrics = result["custom_metrics"]
    assert metrics["n_max"] == metrics["steps_max"] == max(result["hist_stats"]["episode_lengths"])
    assert (result["timesteps_total"], result["timesteps_this_iter"]) == (400, 400)
    assert result["training_iteration"] == trainer.iteration == 1
    assert result["num_healthy_workers"] == 1
    assert result["config"]["num_sgd_iter"] == 4
    learned = result["info"]["learner"]["default_policy"]["learner_stats"]
    assert {"kl", "cur_lr", "cur_kl_coeff", "entropy", "total_loss"} <= learned.keys()
    assert any("CartPole-v1" in finding.message for finding in trainer.translation.report)

    obs = np.array([0.1, 0.2, -0.1, 0.3], np.float32)
    act = {"explore": False, "full_fetch": True}
    before = trainer.compute_action(obs, **act)
    assert trainer.compute_action(obs, **act)[2]["action_dist_inputs"].tolist() == (
        before[2]["action_dist_inputs"].tolist()
    ), "the filter's statistics have changed"
    path = trainer.save()
    assert isinstance(path, str)
    trainer.train()
    trainer.restore(path)
    after = trainer.compute_action(obs, **act)
    assert np.allclose(before[2]["action_dist_inputs"], after[2]["action_dist_inputs"], atol=1e-6)
    assert trainer.iteration == 1
    assert trainer.train()["timesteps_total"] == 800

    weights = trainer.get_weights()
    name = next(n for n in weights["default_policy"] if n.startswith("pi.") and "weight" in n)
    weights["default_policy"][name] = np.zeros_like(weights["default_policy"][name])
    trainer.set_weights(weights)
    assert (
        trainer.workers.foreach_policy(
            lambda policy, policy_id: (policy_id, float(np.abs(policy.get_weights()[name]).sum()))
        )
        == [("default_policy", 0.0)] * 2
    )
    logits = trainer.compute_actions({"a": obs, "b": obs}, **act)[2]["b"]["action_dist_inputs"]
    bias = weights["default_policy"][name.replace("weight", "bias")]
    assert np.allclose(logits, bias, atol=1e-6)
    assert len(trainer.workers.remote_workers()) == 1
    assert trainer.workers.foreach_worker_with_index(lambda worker, index: index) == [0, 1]
    before = trainer.optimizer.num_steps_trained
    trainer.optimizer.step()
    assert trainer.optimizer.num_steps_trained > before


@pytest.mark.matrix
def test_a_checkpoint_alone_makes_a_trainer(make):
    # `Algorithm.from_checkpoint(…)` and `PPO.from_checkpoint(…)` in scripts of Ray 2.1 – 2.9.
    trainer = make(config={**SMALL, "env": "CartPole-v0", "gamma": 0.9})
    trainer.train()
    saved = trainer.save()
    Algorithm = lookup("ray.rllib.algorithms.algorithm", "Algorithm")
    again = Algorithm.from_checkpoint(saved)
    obs = np.array([0.1, 0.2, -0.1, 0.3], np.float32)
    act = {"explore": False, "full_fetch": True}
    one, other = (t.compute_single_action(obs, **act)[2] for t in (trainer, again))
    assert np.allclose(one["action_dist_inputs"], other["action_dist_inputs"], atol=1e-6)
    assert isinstance(again, Algorithm)
    assert (again.iteration, again.config["gamma"], again.config["num_workers"]) == (1, 0.9, 0)
    assert again.train()["timesteps_total"] == 400
    assert np.isfinite(again.train()["episode_reward_mean"])
    again.stop()
    of_any_name = compat.Trainer.from_checkpoint(saved)
    assert of_any_name.config["gamma"] == 0.9
    of_any_name.stop()


@pytest.mark.matrix
def test_an_execution_plan_trains_two_kinds_of_policies_and_counts_on_after_a_restore():
    # As in RLlib's own example `two_trainer_workflow.py` of Ray 0.8.7 – 1.2.0.
    from rllib_compat import execution as plans

    def plan(workers, config):
        buffer = plans.LocalReplayBuffer(learning_starts=50, replay_batch_size=16)
        one, two = plans.ParallelRollouts(workers).duplicate(2)
        stored = one.for_each(plans.SelectExperiences(["dqn"])).for_each(
            plans.StoreToReplayBuffer(local_buffer=buffer)
        )
        replayed = plans.Replay(local_buffer=buffer).for_each(plans.TrainOneStep(workers, ["dqn"]))
        replayed = replayed.for_each(plans.UpdateTargetNetwork(workers, 50, policies=["dqn"]))
        off = plans.Concurrently([stored, replayed], output_indexes=[1])
        on = two.for_each(plans.SelectExperiences(["ppo"])).combine(plans.ConcatBatches(100))
        on = on.for_each(plans.StandardizeFields(["advantages"]))
        on = on.for_each(plans.TrainOneStep(workers, ["ppo"], 2, 50))
        both = plans.Concurrently([on, off], mode="async", output_indexes=[1])
        return plans.StandardMetricsReporting(both, workers, config)

    obs, act = spaces.Box(-10, 10, (3,)), spaces.Discrete(2)
    policies = {
        "ppo": (policy_class("PPOTorchPolicy"), obs, act, {}),
        "dqn": (policy_class("DQNTorchPolicy"), obs, act, {"hiddens": [8]}),
    }
    config = {
        "env": TwoAgents,
        "env_config": {"length": 10},
        "rollout_fragment_length": 50,
        "timesteps_per_iteration": 150,
        "num_workers": 0,
        "model": {"fcnet_hiddens": [8]},
        "multiagent": {
            "policies": policies,
            "policy_mapping_fn": lambda agent: "dqn" if agent else "ppo",
        },
    }
    Mine = build_trainer("Mine", execution_plan=plan)
    trainer, again = Mine(config=config), Mine(config=config)
    result = trainer.train()
    assert set(result["info"]["learner"]) == {"ppo", "dqn"}
    assert result["info"]["num_target_updates"] > 0
    steps = result["timesteps_total"]
    assert 150 <= steps == result["info"]["num_steps_sampled"]
    assert result["episode_len_mean"] == 10
    again.restore(trainer.save())
    assert again.train()["timesteps_total"] > steps
    trainer.stop()
    again.stop()


OBS, ACT = spaces.Box(-10, 10, (3,)), spaces.Discrete(2)


class TwoAgents:
    """An old multi-agent environment: integer ids, and no word about agents or spaces."""

    def __init__(self, config):
        self.length = config["length"]

    def reset(self):
        self.steps = 0
        return {0: [0.0, 0.0, 0.0], 1: np.zeros(3)}

    def step(self, actions):
        self.steps += 1
        done = self.steps >= self.length
        obs = {agent: np.full(3, self.steps / 10) for agent in (0, 1)}
        return (
            obs,
            {0: 1.0, 1: 2},
            {0: done, 1: done, "__all__": done},
            {0: {"t": self.steps}, 1: {}},
        )


@pytest.mark.matrix
@pytest.mark.parametrize(("horizon", "length"), [(None, 12), (10, 10)])
def test_old_multi_agent_environments_and_policies(make, horizon, length):
    def end(info):
        episode = info["episode"]
        assert set(info["policy"]) == {"p0", "p1"}
        assert episode.last_info_for(0) == {"t": length}
        episode.custom_metrics["second"] = episode.agent_rewards[(1, "p1")]

    trainer = make(
        env=TwoAgents,
        config={
            **SMALL,
            "env_config": {"length": 12},
            "horizon": horizon,
            "observation_filter": "MeanStdFilter",
            "callbacks": {"on_episode_end": end},
            "multiagent": {
                "policies": {"p0": (None, OBS, ACT, {"gamma": 0.9}), "p1": (None, OBS, ACT, {})},
                "policy_mapping_fn": lambda agent_id: "p0" if agent_id == 0 else "p1",
                "policies_to_train": ["p0"],
            },
        },
    )
    before = trainer.get_weights()
    result = trainer.train()
    after = trainer.get_weights()
    changed = {
        policy: any(np.any(before[policy][name] != after[policy][name]) for name in before[policy])
        for policy in before
    }
    assert changed == {"p0": True, "p1": False}
    assert result["episode_len_mean"] == length
    assert result["policy_reward_mean"] == {"p0": length, "p1": 2 * length}
    assert result["custom_metrics"]["second_mean"] == 2 * length
    assert trainer.compute_action(np.zeros(3), policy_id="p1") in (0, 1)
    assert trainer.get_policy("p2") is None


def test_structured_spaces_are_flattened_for_the_module(make):
    class Structured:
        observation_space = spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(-1, 1, (2,))})
        action_space = spaces.Tuple([spaces.Discrete(2), spaces.Box(-1, 1, (1,))])

        def __init__(self, config):
            pass

        def reset(self):
            self.steps = 0
            return {"a": 1, "b": [0, 0]}

        def step(self, action):
            self.steps += 1
            return {"a": 2, "b": np.ones(2)}, 1.0, self.steps == 7, {}

    trainer = make(env=Structured, config=SMALL)
    assert trainer.train()["episode_len_mean"] == 7
    first, second = trainer.compute_action({"a": 1, "b": np.zeros(2, np.float32)})
    assert first in (0, 1)
    assert second.shape == (1,)
    assert trainer.get_policy().observation_space.shape == (5,)


def test_recurrent_state_goes_in_and_out(make):
    model = {"use_lstm": True, "lstm_cell_size": 4, "max_seq_len": 5, "fcnet_hiddens": [8]}
    trainer = make(env="Pendulum-v0", config={**SMALL, "horizon": 20, "model": model})
    policy = trainer.get_policy()
    obs, state = np.array([1.0, 0.0, 0.5], np.float32), policy.get_initial_state()
    action, after, _ = trainer.compute_action(obs, state=state, explore=False)
    assert [s.shape for s in after] == [s.shape for s in state]
    again, _, _ = trainer.compute_action(obs, state=after, explore=False)
    assert again != action
    # What the module gave, before it was scaled to [-2, 2]; and the names of Ray 1.x.
    act = {"explore": False, "full_fetch": True}
    inputs = {"obs": obs, **{f"state_in_{i}": s for i, s in enumerate(state)}}
    raw, same, _ = trainer.compute_single_action(input_dict=inputs, unsquash_action=False, **act)
    assert np.allclose(np.clip(raw, -1, 1) * 2, action, atol=1e-5)
    assert all(np.allclose(a, b) for a, b in zip(after, same, strict=True))
    by_policy = policy.compute_single_action(obs, state, explore=False)[1]
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(after, by_policy, strict=True))


@pytest.mark.matrix
def test_evaluation_has_legacy_keys_too(make):
    trainer = make(
        "DQNTrainer",
        env="CartPole-v1",
        config={
            "num_workers": 0,
            "timesteps_per_iteration": 100,
            "learning_starts": 50,
            "evaluation_interval": 1,
            "evaluation_num_episodes": 2,
            "evaluation_config": {"explore": False},
        },
    )
    result = trainer.train()
    assert result["evaluation"]["episodes_this_iter"] == 2
    assert {"mean_q", "cur_lr"} <= result["info"]["learner"]["default_policy"][
        "learner_stats"
    ].keys()
    assert len(trainer.evaluate()["evaluation"]["hist_stats"]["episode_reward"]) == 2
    assert trainer.compute_action(np.zeros(4, np.float32)) in (0, 1)


@pytest.mark.matrix
def test_a_checkpoint_of_ray_0_8_5_goes_on(make):
    (case,) = [c for c in find(ray="0.8.5") if c.path.name == "ppo-tf-meanstd24x16"]
    params = json.loads((case.path / "params.json").read_text())

    class Five:
        observation_space = spaces.Box(-np.inf, np.inf, (5,))
        action_space = spaces.Discrete(3)

        def __init__(self, config):
            pass

        def reset(self):
            return self.observation_space.sample()

        def step(self, action):
            return self.observation_space.sample(), 1.0, True, {}

    trainer = make(env=Five, config=params)
    trainer.restore(case.checkpoint)
    expected = case.expected("default_policy")
    obs = dict(enumerate(expected.observations[""]))
    computed = trainer.compute_actions(obs, explore=False, full_fetch=True)[2]
    ours = np.stack([computed[i]["action_dist_inputs"] for i in obs])
    assert np.abs(ours - expected.logits).max() < 1e-5
    assert trainer.iteration == 2
    assert trainer.train()["training_iteration"] == 3


def test_an_environment_that_fits_no_api_is_one_clear_error():
    class Broken:
        def __init__(self, config):
            pass

    with pytest.raises(LegacyEnvError, match="Broken has no reset"):
        compat.PPOTrainer(env=Broken, config={**SMALL, "num_workers": 1})


def test_what_only_the_old_api_stack_can_do_runs_there(make):
    def end(info):
        info["episode"].custom_metrics["n"] = info["episode"].length

    config = {
        **SMALL,
        "horizon": 20,
        "exploration_config": {"type": "Random"},
        "callbacks": {"on_episode_end": end},
    }
    trainer = make(env="CartPole-v1", config=config)
    assert trainer.translation.api_stack == "old"
    result = trainer.train()
    assert result["episode_len_mean"] == result["custom_metrics"]["n_mean"] <= 20
    assert trainer.compute_action(np.zeros(4, np.float32)) in (0, 1)
    assert trainer.workers.foreach_worker(lambda worker: list(worker.policy_map)) == [
        ["default_policy"]
    ]
    trainer.set_weights(trainer.get_weights())
    trainer.restore(trainer.save())
    assert trainer.train()["training_iteration"] == 2


@pytest.mark.newest
def test_the_guides_first_block_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    guide = Path(__file__).parents[2] / "migration_guide" / "trainer.md"
    block = guide.read_text().split("```python\n")[1].split("```")[0]
    names = {"__name__": "guide"}
    exec(block, names)
    names["trainer"].stop()
    mean, longest = map(float, capsys.readouterr().out.splitlines()[-1].split())
    assert 0 < mean <= longest <= 100


def test_tune_stops_by_legacy_keys(tmp_path):
    from ray import tune

    seen = SimpleNamespace(
        trials=tune.run(
            compat.PPOTrainer,
            config={**SMALL, "env": "CartPole-v1", "lr": tune.grid_search([1e-3, 1e-4])},
            stop={"timesteps_total": 400},
            checkpoint_at_end=True,
            verbose=0,
            storage_path=str(tmp_path),
        ).trials
    )
    assert [trial.last_result["training_iteration"] for trial in seen.trials] == [2, 2]
    assert all(trial.checkpoint for trial in seen.trials)
    assert all(trial.last_result["episode_reward_mean"] > 0 for trial in seen.trials)


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["PPOTrainer", "A2CTrainer"])
def test_steps_and_episodes_are_counted_once_however_often_an_iteration_samples(make, name):
    """Rays until 2.49 count fragments several times, and some can't merge what some did not log."""
    small = {"train_batch_size": 80, "rollout_fragment_length": 20, "timesteps_per_iteration": 300}
    small |= {"model": {"fcnet_hiddens": [8]}, "num_workers": 0, "env": "CartPole-v1"}
    small["min_iter_time_s"] = 0
    trainer = make(name, config=small | ({"sgd_minibatch_size": 40} if name[0] == "P" else {}))
    results = [trainer.train() for _ in range(2)]
    assert [result["timesteps_total"] for result in results] == [320, 640]
    assert [result["timesteps_this_iter"] for result in results] == [320, 320]
    seen = [result["episodes_this_iter"] for result in results]
    assert [result["episodes_total"] for result in results] == [seen[0], sum(seen)]


def failing(place, failed=None):
    # By value: the env runners can't import this module. `failed` is a file: it fails just once.
    class Failing:
        observation_space = spaces.Box(0, 9, (2,), np.int64)
        action_space = spaces.Discrete(2)

        def __init__(self, config):
            self.steps = 0

        def reset(self):
            return np.zeros(2, np.int64)

        def step(self, action):
            self.steps += 1
            if place == "env" and self.steps == 30 and not (failed and failed.exists()):
                if failed:
                    failed.touch()
                raise ValueError("the 30th step went wrong")
            return np.full(2, 3), 1.0, self.steps % 10 == 0, {}

    def end(info):
        if place == "callback":
            raise ValueError("the callback went wrong")

    return {"env": Failing, "callbacks": {"on_episode_end": end}}


def test_a_remote_worker_that_dies_of_users_code_is_an_error(make):
    """Today's runners are restarted silently, and train() returns results without a number."""
    trainer = make(config={**SMALL, **failing("env"), "num_workers": 1})
    with pytest.raises(Exception, match=r"went wrong|actor died"):
        trainer.train()


@pytest.mark.parametrize("place", ["env", "callback"])
def test_the_first_error_of_users_code_reaches_them(place, make):
    trainer = make(config={**SMALL, **failing(place)})
    with pytest.raises((RuntimeError, ValueError)) as error:  # Ray puts its own around it
        trainer.train()
    lines = "".join(traceback.format_exception(error.value))
    assert "went wrong" in lines
    assert ("in step" if place == "env" else "in end") in lines


def test_workers_are_replaced_where_the_config_asks_for_it(make, tmp_path):
    places = failing("env", failed=tmp_path / "failed")
    config = {**SMALL, **places, "num_workers": 1, "recreate_failed_workers": True}
    config["delay_between_worker_restarts_s"] = 0.1
    trainer = make(config=config)
    assert trainer.algorithm.config.restart_failed_env_runners
    assert trainer.train()["timesteps_this_iter"] == 0
    assert (tmp_path / "failed").exists()
    totals = (trainer.train()["timesteps_total"] for _ in range(20))
    assert next(filter(None, totals), 0) == 200


def test_observations_of_integers_train_without_a_filter(make):
    trainer = make(config={**SMALL, **failing("nowhere")})
    assert trainer.train()["episode_reward_mean"] == 10
    assert trainer.compute_action(np.array([1, 2])) in (0, 1)


@pytest.mark.matrix
def test_a_subclass_says_itself_what_an_iteration_is():
    # As subclasses of Ray 1.11 – 2.x do, with `training_iteration` first and `training_step` later.
    class Mine(compat.PPOTrainer):
        @classmethod
        def get_default_config(cls):
            return {**super().get_default_config(), "num_sgd_iter": 2}

        def validate_config(self, config):
            config["sgd_minibatch_size"] = 50

        def training_step(self):
            batch = synchronous_parallel_sample(worker_set=self.workers).as_multi_agent()
            self._counters["num_env_steps_sampled"] += batch.env_steps()
            self._counters["num_agent_steps_sampled"] += batch.agent_steps()
            self.learned = train_one_step(self, batch)
            self.workers.sync_weights()
            return self.learned

    trainer = Mine(config={"env": "CartPole-v1", "num_workers": 0, "rollout_fragment_length": 100})
    try:
        before = copy.deepcopy(trainer.get_weights()["default_policy"])
        result = trainer.train()
        after = trainer.get_weights()["default_policy"]
        assert trainer.learned["default_policy"]["learner_stats"]
        assert (trainer.config["num_sgd_iter"], trainer.config["sgd_minibatch_size"]) == (2, 50)
        assert result["timesteps_total"] == trainer._counters["num_env_steps_trained"] >= 100
        assert any(np.any(after[name] != before[name]) for name in before)
    finally:
        trainer.stop()
