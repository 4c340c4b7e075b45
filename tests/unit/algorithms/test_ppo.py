"""An iteration of PPO gives the weights that it gave in an old Ray, and tells what that told.

`tests/legacy/losses/record_ppo.py` and `record_ppo_0_8.py` made the numbers, with Ray 1.13.0 and
0.8.5, and torch.
"""

import json
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from rllib_compat import translate
from rllib_compat.algorithms import LegacyTraining, use_legacy_learners, uses_simple_optimizer
from rllib_compat.algorithms.ppo import PPO, passes
from rllib_compat.ray_versions import algorithms, episodes, releases, startup, training_steps
from rllib_compat.runtime import use_compat_env_runners, use_reporting_learner
from rllib_compat.runtime.learner_info import LEARNER_STATS
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.recordings import Recording, close, close_all
from tests.unit.algorithms.test_losses import HEADS, LSTM, OF_LSTM, SEPARATE, SHARED, states_of

HOME = Path(__file__).parents[2] / "legacy" / "losses"
RECORDS = HOME / "1.13.0"
TWO_GPUS = "two-gpus"
FILES = (p for p in HOME.glob("*/ppo-*.npz") if not p.stem.endswith(TWO_GPUS))
CASES = sorted((p.parent.name, p.stem.removeprefix("ppo-")) for p in FILES)
MODULE = "default_policy"
RAY = "1.13.0"
SPACES = (gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), gymnasium.spaces.Discrete(3))

pytestmark = OTHERS_WARNINGS


class Recorded(Recording):
    """One case, by the names of today."""

    def __init__(self, case, ray=RAY):
        super().__init__(HOME / ray / f"ppo-{case}.npz")
        self.ray, self.recurrent = ray, case == "lstm"
        separate = any("_value_branch_separate" in name for name in self.found)
        self.layers = OF_LSTM if self.recurrent else HEADS | (SEPARATE if separate else SHARED)

    def arrays(self, kind):
        """Weights by today's names."""
        split = ((name.rpartition("."), array) for name, array in self.below(kind).items())
        return {f"{self.layers[layer]}.{part}": array for (layer, _, part), array in split}

    def action_space(self):
        if self.chunks()[0]["actions"].ndim == 1:
            return gymnasium.spaces.Discrete(3)
        return gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def learner(self):
        """A learner with the recorded weights, made as a trainer makes it."""
        shares = not any("critic" in layer for layer in self.layers.values())
        model = {"fcnet_hiddens": [8, 6], "fcnet_activation": "tanh"}
        old = {
            "framework": "torch",
            "model": dict(LSTM) if self.recurrent else model,
            **{key: value for key, value in self.told().items() if not key.endswith("_gpus")},
        }
        if self.ray != RAY:
            old["use_pytorch"] = old.pop("framework") == "torch"
            # Its torch policies looked at no schedule, which a trainer does not repeat.
            old = {key: value for key, value in old.items() if not key.endswith("_schedule")}
        where = old["model"] if self.ray == RAY else old
        where["vf_share_layers"] = shares
        translation = translate(old, algorithm="PPO", legacy_ray=self.ray)
        config = translation.algorithm_config
        use_reporting_learner(config)
        use_legacy_learners(config, translation.legacy_training)
        assert config.algo_class is PPO
        spaces = (gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), self.action_space())
        learner = config.build_learner(spaces={MODULE: spaces})
        state = learner.module[MODULE].get_state()
        assert state.keys() >= self.arrays("weights").keys()
        learner.module[MODULE].set_state({**state, **self.arrays("weights")})
        return learner


def episodes_of(recorded):
    """The chunks that were sampled."""
    return [episodes.to_numpy(episode_of(chunk)) for chunk in recorded.chunks()]


def episode_of(chunk):
    outputs = {name: list(chunk[name]) for name in ("action_logp", "action_dist_inputs")}
    outputs |= states_of(chunk)
    return SingleAgentEpisode(
        observations=list(chunk["obs"]),
        actions=list(chunk["actions"]),
        rewards=[float(reward) for reward in chunk["rewards"]],
        extra_model_outputs=outputs,
        terminated=bool(chunk["done"]),
        len_lookback_buffer=0,
    )


def iterated(learner, recorded, sampled):
    """One iteration; what it tells of the module, by the old names."""
    told, logger = {}, learner.metrics
    log_dict, log_value = logger.log_dict, logger.log_value

    def see_dict(values, **how):
        told.update({LEARNER_STATS.get(name, name): value for name, value in values.items()})
        log_dict(values, **how)

    def see_value(key, value, **how):
        if key[-1] in ("cur_lr", "entropy_coeff", "cur_kl_coeff"):
            told[key[-1]] = value
        log_value(key, value, **how)

    logger.log_dict, logger.log_value = see_dict, see_value
    np.random.seed(recorded.found["seed"])
    random.seed(int(recorded.found["seed"]))
    training_steps.update_learner(
        learner, episodes_of(recorded), {"num_env_steps_sampled_lifetime": sampled}
    )
    logger.log_dict, logger.log_value = log_dict, log_value
    return {name: value for name, value in told.items() if name in recorded.below("told.1")}


@pytest.mark.parametrize(("ray", "case"), CASES)
def test_iterations_give_the_weights_that_the_old_ray_had_after_them(ray, case):
    recorded = Recorded(case, ray)
    learner, before = recorded.learner(), recorded.arrays("weights")
    for number in (1,) if recorded.recurrent else (1, 2):
        told = iterated(learner, recorded, sampled=50 * number)
        state, after = learner.module[MODULE].get_state(), recorded.arrays(f"after.{number}")
        for name, theirs in after.items():
            close(state[name], theirs, 1e-5, "update")
            assert np.abs(theirs - before[name]).max() > 1e-4
        theirs = recorded.below(f"told.{number}")
        if recorded.recurrent:  # which the old Ray computed of padding, too
            del told["vf_explained_var"]
        for name, value in told.items():
            close(float(value), theirs[name], 1e-4, "loss")
        assert {"kl", "cur_kl_coeff", "vf_loss", "entropy"} <= told.keys()
        before = after


def test_several_gpus_each_took_a_part_of_a_minibatch_from_its_own_part_of_the_batch(monkeypatch):
    """A step of two GPUs is one of a single learner that takes the rows of both."""
    recorded = Recorded(TWO_GPUS)
    offsets = iter(recorded.found["offsets"])
    half, each = 50 // 2, 13 // 2

    def taken(lengths, size, epochs, _):
        steps = next(offsets)
        assert len(steps) == epochs * (half // each)
        for number, begin in enumerate(steps):
            rows = np.arange(begin, begin + each)
            yield number % (half // each) == 0, np.concatenate([rows, rows + half])

    monkeypatch.setattr("rllib_compat.algorithms.ppo.passes", taken)
    learner = recorded.learner()
    for number in (1, 2):
        told = iterated(learner, recorded, sampled=50 * number)
        state = learner.module[MODULE].get_state()
        close_all(state, recorded.arrays(f"after.{number}"), 1e-5, "update")
        close(float(told["kl"]), recorded.below(f"told.{number}")["kl"], 1e-4, "loss")


def test_rates_that_change_are_told_as_they_were_used():
    recorded = Recorded("schedules")
    learner = recorded.learner()
    for number in (1, 2):
        told = iterated(learner, recorded, sampled=50 * number)
        for name in ("cur_lr", "entropy_coeff"):
            close(told[name], recorded.below(f"told.{number}")[name], 1e-6)
    rates = [recorded.below(f"told.{number}")["cur_lr"] for number in (1, 2)]
    np.testing.assert_allclose(rates, [0.01, 0.0055])


def test_a_minibatch_of_ddppo_has_a_sequence_at_least():
    old = {"num_workers": 1, "rollout_fragment_length": 50, "num_sgd_iter": 1, "model": dict(LSTM)}
    old |= {"framework": "torch", "sgd_minibatch_size": 2, "num_envs_per_worker": 1}
    config = translate(old, algorithm="DDPPO", legacy_ray=RAY).algorithm_config
    learner = config.build_learner(spaces={MODULE: SPACES})
    steps, optimizer = [], learner.get_optimizer(MODULE)
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    learner.learn_with_others(episodes_of(Recorded("lstm")), 50)
    assert len(steps) == 50 // LSTM["max_seq_len"]


class Pair(MultiAgentEnv):
    """Two agents take each of an episode's five steps."""

    def __init__(self, _=None):
        super().__init__()
        self.agents = self.possible_agents = [0, 1]
        self.observation_spaces = dict.fromkeys((0, 1), SPACES[0])
        self.action_spaces = dict.fromkeys((0, 1), SPACES[1])

    def seen(self):
        return {agent: np.zeros(4, np.float32) for agent in (0, 1)}

    def reset(self, **_):
        self.at = 0
        return self.seen(), {}

    def step(self, actions):
        self.at += 1
        ends = {"__all__": self.at == 5}
        return self.seen(), {0: 1.0, 1: 1.0}, ends, {"__all__": False}, {}


@pytest.mark.parametrize(("ray", "steps"), [(RAY, 40), ("1.12.1", 20)])
def test_schedules_went_by_steps_of_agents_since_ray_1_13(ray, steps):
    policy = (None, *SPACES, {})
    agents = {"policies": {"a": policy, "b": policy}}
    agents["policy_mapping_fn"] = lambda agent, *_, **__: "ab"[agent]
    passes = {"train_batch_size": 20, "sgd_minibatch_size": 10, "num_sgd_iter": 1}
    old = {"num_workers": 0, "rollout_fragment_length": 10, "multiagent": agents, **passes}
    old |= {"lr_schedule": [[0, 0.01], [100, 0.001]], "lr": 0.01}
    translation = translate(old, algorithm="PPO", legacy_ray=ray)
    config = translation.algorithm_config.environment(Pair)
    use_reporting_learner(config)
    use_legacy_learners(config, translation.legacy_training)
    use_compat_env_runners(config)
    rates = []
    with startup.without_cluster():
        algorithm = algorithms.build_algorithm(config)
        learner = algorithm.learner_group._learner
        for _ in range(3):
            found, log_value = {}, learner.metrics.log_value

            def see(key, value, found=found, log_value=log_value, **how):
                if key[-1] == "cur_lr":
                    found[key[0]] = float(value)
                log_value(key, value, **how)

            learner.metrics.log_value = see
            algorithm.training_step()
            learner.metrics.log_value = log_value
            rates.append(found)
    expected = [0.01 - number * steps * 9e-5 for number in range(3)]
    told = json.loads((RECORDS.parent / ray / "agent_steps.json").read_text())
    assert [rate["a"] for rate in told] == pytest.approx(expected)
    for found, recorded in zip(rates, told, strict=True):
        assert found == pytest.approx(recorded)


def test_minibatches_of_sequences_are_the_slices_of_ray_1_13():
    with np.load(RECORDS / "minibatches.npz") as found:
        for case in range(3):
            lengths, size, slices = (found[f"{case}.{n}"] for n in ("lengths", "size", "slices"))
            made = [chosen for _, chosen in passes(lengths, int(size), 1, legacy(RAY))]
            ours = sorted((int(rows[0]), int(rows[-1]) + 1) for rows in made)
            assert ours == [tuple(pair) for pair in slices.tolist() if pair != [-1, -1]]


def legacy(release, *, simple=False):
    return LegacyTraining.of_release(release, "torch", simple_optimizer=simple)


@pytest.mark.parametrize("trained", [None, ["often"]])
def test_each_policy_makes_its_own_passes(trained):
    """Today's learner makes as many minibatches for a rare agent as for the one with most steps.

    What is counted as trained has the steps of frozen policies in it, as it had.
    """
    old = {"num_sgd_iter": 3, "sgd_minibatch_size": 8, "train_batch_size": 64, "num_gpus": 0}
    policies = {"often": (None, *SPACES, {}), "rare": (None, *SPACES, {})}
    agents = {"policies": policies, "policy_mapping_fn": lambda agent, *_, **__: agent}
    if trained is not None:
        agents["policies_to_train"] = trained
    translation = translate({**old, "multiagent": agents}, algorithm="PPO", legacy_ray=RAY)
    config = translation.algorithm_config
    use_reporting_learner(config)
    use_legacy_learners(config, translation.legacy_training)
    learner = config.build_learner(spaces=dict.fromkeys(policies, SPACES))
    steps, counted, log_value = [], {}, learner.metrics.log_value

    def see(key, value, **how):
        counted[key] = counted.get(key, 0) + value if "steps_trained" in key[-1] else value
        log_value(key, value, **how)

    learner.metrics.log_value = see
    for name in policies:
        optimizer = learner.get_optimizer(name)
        optimizer.register_step_post_hook(lambda *_, name=name: steps.append(name))
    batch = {name: rows(count) for name, count in (("often", 41), ("rare", 5))}
    update = learner.update if releases.at_least("2.44") else learner.update_from_batch
    update(batch=MultiAgentBatch(batch, 44), timesteps={"num_env_steps_sampled_lifetime": 44})
    name = "num_module_steps_trained"
    if trained is None:
        assert steps == ["often"] * 15 + ["rare"] * 3
        assert counted["rare", name] == 5
    else:
        assert steps == ["often"] * 15
        assert ("rare", name) not in counted
    assert counted["often", name] == 41
    assert counted["__all_modules__", name] == 46  # without those that were added
    assert counted["__all_modules__", f"{name}_lifetime"] == 46
    assert counted["__all_modules__", "num_env_steps_trained"] == 44


def rows(count):
    """So many steps of a batch as the learner's pipeline makes it, and one that was added."""
    drawn = torch.Generator().manual_seed(3)
    whole = count + 1
    columns = ("rewards", "advantages", "value_targets")
    return SampleBatch(
        {
            "obs": torch.randn(whole, 4, generator=drawn),
            "actions": torch.randint(3, (whole,), generator=drawn),
            "action_dist_inputs": torch.zeros(whole, 3),
            "action_logp": torch.full((whole,), -float(np.log(3))),
            "loss_mask": torch.arange(whole) < count,
            **{name: torch.randn(whole, generator=drawn) for name in columns},
        }
    )


@pytest.mark.parametrize("release", ["0.8.5", "1.5.2", "1.6.0", "2.3.1"])
@pytest.mark.parametrize(("steps", "size"), [(400, 64), (20, 64), (64, 64), (7, 2)])
def test_a_pass_has_as_many_minibatches_as_fit_and_each_step_once(release, steps, size):
    lengths = np.ones(steps, int)
    made = list(passes(lengths, size, 3, legacy(release)))
    assert len(made) == 3 * max(1, steps // size)
    assert sum(begins for begins, _ in made) == 3
    one = np.concatenate([rows for _, rows in made[: len(made) // 3]])
    assert len(set(one.tolist())) == len(one) == min(steps, max(1, steps // size) * size)


def test_sequences_longer_than_minibatches_are_learned_from():
    for lengths in ([20], [20, 20], [3, 20]):
        made = list(passes(np.array(lengths), 7, 2, legacy(RAY)))
        assert sum(begins for begins, _ in made) == 2
        assert 0 in np.concatenate([rows for _, rows in made])


def test_a_minibatch_without_a_step_changes_nothing_where_several_learn():
    translation = translate({"num_learners": 2}, algorithm="PPO", legacy_ray=RAY)
    config = translation.algorithm_config
    use_legacy_learners(config, translation.legacy_training)
    learner = config.learners(num_learners=0).build_learner(spaces={"default_policy": SPACES})
    batch = {"obs": torch.zeros(3, *SPACES[0].shape), "loss_mask": torch.zeros(3, dtype=bool)}
    out = learner.module["default_policy"].forward_train(batch)
    loss = learner.compute_loss_for_module(
        module_id="default_policy", config=config, batch=batch, fwd_out=out
    )
    gradients = learner.compute_gradients({"default_policy": loss})
    assert loss == 0
    assert gradients
    assert all(not gradient.any() for gradient in gradients.values())
    _, losses, _ = learner._update({"default_policy": rows(5)})
    empty = {**rows(5), "loss_mask": torch.zeros(6, dtype=bool)}
    _, reported, _ = learner._update({"default_policy": empty})
    assert reported["default_policy"] == losses["default_policy"] != 0


def test_policies_that_load_nothing_learn_from_the_rest_too():
    made = list(passes(np.ones(400, int), 64, 2, legacy("1.2.0", simple=True)))
    assert len(made) == 14
    for first in (0, 7):
        rows = np.concatenate([rows for _, rows in made[first : first + 7]])
        assert sorted(rows.tolist()) == list(range(400))


def test_loaded_steps_keep_their_places_since_ray_1_6():
    """Minibatches are the same slices in each pass, in another order."""
    for release, stays in (("1.6.0", True), ("1.5.2", False)):
        made = [tuple(rows) for _, rows in passes(np.ones(32, int), 8, 4, legacy(release))]
        assert len(set(made)) == 4
        assert all((np.diff(rows) == 1).all() for rows in made) is stays


@pytest.mark.parametrize(
    ("release", "framework", "asked", "simple"),
    [
        ("0.8.5", "tf", False, False),
        ("0.8.5", "torch", False, True),
        ("1.5.2", "torch", None, True),
        ("1.6.0", "torch", None, False),
        ("1.13.0", "tfe", None, True),
        ("1.13.0", "torch", True, True),
    ],
)
def test_which_policies_loaded_a_whole_batch_first(release, framework, asked, simple):
    assert uses_simple_optimizer(release, framework, asked) is simple


def test_a_cut_was_an_end_until_ray_2_2_and_the_critic_was_clipped_until_1_11():
    found = {release: legacy(release) for release in ("1.11.1", "1.12.1", "2.2.0", "2.3.0")}
    assert [w.time_limit_terminates for w in found.values()] == [True, True, True, False]
    assert [w.clips_value_function for w in found.values()] == [True, False, False, False]


@pytest.mark.parametrize(
    ("told", "legacy_ray", "kept"),
    [
        ({"num_workers": 0}, None, True),
        ({"num_workers": 0}, "today", False),
        ({"num_epochs": 3}, None, False),
        ({}, "1.13.0", True),
        ({}, "2.48.0", False),
    ],
)
def test_the_ways_are_those_of_the_configs_ray(told, legacy_ray, kept):
    assert (
        translate(told, algorithm="PPO", legacy_ray=legacy_ray).legacy_training is not None
    ) is kept


@pytest.mark.parametrize(
    ("algorithm", "told", "rate"),
    [
        ("PPO", {"framework": "torch"}, 5e-5),
        ("A2C", {"framework": "torch", "lr": 0.3}, 0.3),
        ("PG", {"framework": "torch", "lr": 0.01}, 0.01),
        ("PPO", {"framework": "tf"}, None),
        ("IMPALA", {"framework": "torch"}, None),
    ],
)
def test_torch_policies_began_with_lr_where_their_optimizer_did(algorithm, told, rate):
    old = {"lr_schedule": [[0, 0.01], [100, 0.001]], **told}
    assert translate(old, algorithm=algorithm, legacy_ray=RAY).legacy_training.initial_lr == rate


@pytest.mark.parametrize(("release", "now"), [("1.12.1", None), ("1.13.0", 460)])
def test_schedules_of_several_agents_go_by_steps_of_agents_since_ray_1_13(
    release, now, monkeypatch
):
    """An iteration told its policies how many there were, which schedules look at."""
    agents = {"policies": {"a": (None, *SPACES, {})}, "policy_mapping_fn": lambda *_, **__: "a"}
    translation = translate({"multiagent": agents}, algorithm="PPO", legacy_ray=release)
    config = translation.algorithm_config
    use_legacy_learners(config, translation.legacy_training)
    logger, told = MetricsLogger(), []
    for agent, steps in (("0", 200), ("1", 200), ("2", 60)):
        key = ("env_runners", "num_agent_steps_sampled_lifetime", agent)
        logger.log_value(key, steps, reduce="sum")
    monkeypatch.setattr(training_steps, "sample_episodes", lambda *_: ["an episode"])
    monkeypatch.setattr(training_steps, "send_new_weights", lambda *_: None)
    monkeypatch.setattr(training_steps, "update_learners", lambda *given: told.append(given[2]))
    PPO.training_step(SimpleNamespace(config=config, metrics=logger))
    assert told == [now]
