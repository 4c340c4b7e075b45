"""Converted checkpoints train on: with the old weights, targets, moments and memory."""

import gymnasium
import numpy as np
import pytest

import rllib_compat as compat
from rllib_compat import Given, convert
from rllib_compat.conversion import prepare
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import DEFAULT, TARGET_PREFIX, load_rl_modules, plan_optimizers
from rllib_compat.neutral import Verdict
from rllib_compat.ray_versions import checkpoints, learners, releases
from tests.envs import SampledEnv
from tests.legacy.cases import MUSEUM, case_of, find
from tests.marks import CONVERSIONS, marked
from tests.unit.test_optimizers import EAGER, GRAPH, STORED, TORCH, only

pytestmark = CONVERSIONS

FREE = only(STORED, ray="2.35.0", stack="new", variant="freelogstd")
MANY = only(STORED, ray="1.13.0", framework="torch", variant="ma-tuples")
LEARNER = only(STORED, ray="2.10.0", stack="learner", variant="vfshare")


def same_as_old(algorithm, done):
    """How many of the old states the optimizers of an algorithm have."""
    states, _ = plan_optimizers(done.checkpoint.policies, done.networks)
    learner = learners.local_learner(algorithm)
    for policy_id, named in states.items():
        state = named[DEFAULT]
        optimizer = learner.get_optimizer(policy_id)
        network = done.networks[policy_id]
        mean, square = network.target.arrays(state.mean), network.target.arrays(state.square)
        names = {id(p): name for name, p in learner.module[policy_id].named_parameters()}
        assert len(optimizer.state) == len(mean)
        for parameter, slot in optimizer.state.items():
            name = names[id(parameter)]
            assert float(slot["step"]) == state.step
            np.testing.assert_array_equal(slot["exp_avg"].numpy(), mean[name])
            np.testing.assert_array_equal(slot["exp_avg_sq"].numpy(), square[name])
        for group in optimizer.param_groups:
            settings = [group["lr"], group["eps"], *group["betas"]]
            # Ray 2.41 - 2.55 restore an optimizer's numbers as tensors of 32 bits.
            if releases.at_least("2.56") or not releases.at_least("2.41"):
                assert {type(value) for value in settings} == {float}
            rate, *constants = map(float, settings)
            assert constants == pytest.approx([1e-8, 0.9, 0.999], rel=1e-6)
            config = learner.config.get_config_for_module(policy_id)
            assert isinstance(config.lr, list) or rate == pytest.approx(config.lr)
    return len(states)


#: All but free deviations, whose moments `test_optimizers` holds against their weights.
ON_EACH_PUSH = (TORCH, GRAPH, EAGER, MANY, LEARNER)


@pytest.mark.parametrize("case", marked([*ON_EACH_PUSH, FREE], ON_EACH_PUSH), ids=str)
def test_from_checkpoint_has_the_old_moments_and_trains_on(case, load, tmp_path):
    trains = case in (TORCH, GRAPH)
    given = Given(algorithm="PPO", env=case.about["env"] if trains else None)
    done = convert(case.checkpoint, tmp_path / "new", given=given, inputs=5)
    told = [f for f in done.report if f.rule == "optimizer"]
    assert {f.verdict for f in told} == {Verdict.DERIVED if case is GRAPH else Verdict.EXACT}
    algorithm = load(tmp_path / "new")
    assert same_as_old(algorithm, done) == len(done.networks)
    if trains:
        algorithm.train()
        optimizer = learners.local_learner(algorithm).get_optimizer("default_policy")
        state, _ = plan_optimizers(done.checkpoint.policies, done.networks)
        steps = {float(slot["step"]) for slot in optimizer.state.values()}
        assert min(steps) > state["default_policy"][DEFAULT].step


def test_what_was_converted_reads_back(tmp_path):
    done = convert(TORCH.checkpoint, tmp_path / "new", given=Given(algorithm="PPO"), inputs=5)
    again = prepare(read_checkpoint(tmp_path / "new"), Given())
    old, new = (
        plan_optimizers(found.checkpoint.policies, found.networks)[0]["default_policy"][DEFAULT]
        for found in (done, again)
    )
    assert old.step == new.step
    for name, mean in old.mean.items():
        np.testing.assert_array_equal(mean, new.mean[name])
        np.testing.assert_array_equal(old.square[name], new.square[name])


@pytest.mark.matrix
@pytest.mark.skipif(
    checkpoints.writes_checkpoint_version() == "2.0", reason="that Ray writes pickles only"
)
def test_state_as_msgpack_has_the_optimizer_too(load, tmp_path):
    done = convert(
        TORCH.checkpoint,
        tmp_path / "new",
        given=Given(algorithm="PPO"),
        inputs=5,
        state_format="msgpack",
    )
    algorithm = load(tmp_path / "new")
    assert same_as_old(algorithm, done) == 1


@pytest.mark.matrix
@pytest.mark.parametrize(
    "name",
    [
        "1.13.0/dqn-torch-hiddens2",  # today's default module
        "0.8.5/dqn-tf-nohiddens-dueling",  # ours
        "1.13.0/simpleq-tf-default",  # DQN takes the place of SimpleQ
    ],
)
def test_training_of_dqn_goes_on_where_it_stopped(name, load, tmp_path):
    case = case_of(name)
    given = Given(algorithm=case.algorithm, env="CartPole-v1")
    done = convert(case.checkpoint, tmp_path / "new", given=given, inputs=50)
    (network,) = done.networks.values()
    (old,) = done.checkpoint.policies.values()
    steps = done.checkpoint.counters.env_steps
    algorithm = load(tmp_path / "new")
    learner = learners.local_learner(algorithm)
    state = learner.module["default_policy"].get_state()
    for key, array in network.target.arrays(network.arrays).items():
        np.testing.assert_array_equal(state[key], array, err_msg=key)
    runner = algorithm.env_runner
    assert runner.get_state()["num_env_steps_sampled_lifetime"] == steps
    optimizer = learner.get_optimizer("default_policy")
    adam, _ = plan_optimizers({"p": old}, {"p": network})
    before = adam["p"][DEFAULT].step if adam else 0
    assert {float(slot["step"]) for slot in optimizer.state.values()} == (
        {before} if adam else set()
    )

    result = algorithm.train()
    assert result["training_iteration"] == done.checkpoint.counters.iteration + 1
    if "learners" not in result:  # Ray 2.40's first iteration ends before learning starts
        result = algorithm.train()
    assert result["env_runners"]["num_env_steps_sampled_lifetime"] > steps
    assert np.isfinite(result["learners"]["default_policy"]["qf_loss"])
    assert min(float(slot["step"]) for slot in optimizer.state.values()) > before
    schedule = runner.module.epsilon_schedule
    assert 0.9 < float(schedule.get_current_value()) < 0.99
    trained = learner.module["default_policy"].get_state()
    online = {k for k in network.arrays if not k.startswith(TARGET_PREFIX)}
    for key in network.target.arrays({k: network.arrays[k] for k in online}):
        if key.endswith(("kernel", "weight")):
            assert not np.array_equal(trained[key], state[key]), key


def test_r2d2_goes_on_with_its_network_its_target_and_its_optimizer(load, tmp_path):
    case = case_of("1.13.0/r2d2-torch-v-hiddens-noh")
    told = Given(algorithm="R2D2", env="CartPole-v1", overrides={"learning_starts": 60})
    done = convert(case.checkpoint, tmp_path / "new", given=told, inputs=50)
    assert not [row for row in done.report if "its eps was" in row.message]
    (network,) = done.networks.values()
    (old,) = done.checkpoint.policies.values()
    algorithm = load(tmp_path / "new")
    learner = learners.local_learner(algorithm)
    before = learner.module["default_policy"].get_state()
    for key, array in network.target.arrays(network.arrays).items():
        np.testing.assert_array_equal(before[key], array, err_msg=key)
    optimizer = learner.get_optimizer("default_policy")
    steps = plan_optimizers({"p": old}, {"p": network})[0]["p"][DEFAULT].step
    assert {float(slot["step"]) for slot in optimizer.state.values()} == {steps} != {0.0}
    eps = [float(group["eps"]) for group in optimizer.param_groups]
    assert eps == pytest.approx([1e-3] * len(eps))
    result = algorithm.train()
    assert result["training_iteration"] == done.checkpoint.counters.iteration + 1
    if "learners" not in result:  # Ray 2.40's first iteration ends before learning starts
        result = algorithm.train()
    assert np.isfinite(float(result["learners"]["default_policy"]["total_loss"]))
    assert min(float(slot["step"]) for slot in optimizer.state.values()) > steps
    after = learner.module["default_policy"].get_state()
    assert not np.array_equal(after["net.lstm.kernel"], before["net.lstm.kernel"])


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("1.13.0/r2d2-torch-v-hiddens-noh", {}),  # DQN trains no LSTMs
        ("0.6.6/dqn-tf-rainbow", {"exploration_config": {"type": "RE3"}}),
    ],
)
def test_what_no_todays_algorithm_trains_acts_as_before(name, more, tmp_path):
    import torch

    case = case_of(name)
    done = convert(
        case.checkpoint,
        tmp_path / "new",
        given=Given(algorithm="DQN", env="CartPole-v1", overrides=more),
        inputs=50,
    )
    assert {f.rule for f in done.report if f.rule == "inference-only"}
    module = load_rl_modules(tmp_path / "new", ["default_policy"])["default_policy"].module
    expected = case.expected("default_policy")
    batch = {"obs": torch.from_numpy(expected.inputs.astype(np.float32))}
    if done.networks["default_policy"].graph.states:
        batch["obs"] = batch["obs"][:, None]
        states = [torch.from_numpy(expected.arrays[f"state_in_{i}"]) for i in range(2)]
        batch["state_in"] = dict(zip(("h", "c"), states, strict=True))
    actions = module.forward_inference(batch)["actions"].reshape(-1)
    stored = expected.arrays
    values = stored.get("out/q_values", stored.get("q_values"))
    np.testing.assert_array_equal(actions, values.argmax(-1))


# With previous actions (a module of ours that env runners feed), the default module, attention.
RECURRENT = [
    next(c for c in find(ray=ray) if c.path.name == name)
    for ray, name in (
        ("1.13.0", "ppo-torch-lstm-prev"),
        ("2.0.1", "ppo-torch-lstm"),
        ("1.13.0", "ppo-torch-attention"),
    )
]


@pytest.mark.matrix
@pytest.mark.parametrize("case", RECURRENT, ids=str)
def test_training_goes_on_from_the_old_memory_and_policy(case, load, tmp_path):
    given = Given(algorithm="PPO", env="CartPole-v1")
    done = convert(case.checkpoint, tmp_path / "new", given=given, inputs=60)
    assert done.largest_difference < 1e-4
    algorithm = load(tmp_path / "new")
    result = algorithm.train()
    assert result["training_iteration"] == done.checkpoint.counters.iteration + 1
    # What was sampled came from the policy that learned: the first update hardly moves it.
    (losses,) = (v for k, v in result["learners"].items() if k != "__all_modules__")
    assert np.isfinite(losses["total_loss"])
    assert abs(losses["mean_kl_loss"]) < 0.05


IMAGES = next(c for c in find(ray="1.13.0", framework="torch") if c.variant == "images")


class Images(SampledEnv):
    observation_space = gymnasium.spaces.Box(0, 255, (10, 10, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(3)
    liked = 0


def test_training_goes_on_with_images_weights_and_moments(load, tmp_path):
    from ray.tune.registry import register_env

    register_env("images", Images)
    done = convert(
        IMAGES.checkpoint, tmp_path / "new", given=Given(algorithm="PPO", env="images"), inputs=50
    )
    algorithm = load(tmp_path / "new")
    learner = learners.local_learner(algorithm)
    module = learner.module["default_policy"]
    assert module.observation_space == Images.observation_space
    network = done.networks["default_policy"]
    for name, theirs in network.module_state().items():
        np.testing.assert_array_equal(module.get_state()[name], theirs)
    states, _ = plan_optimizers(done.checkpoint.policies, done.networks)
    slots = learner.get_optimizer("default_policy").state.values()
    assert {float(slot["step"]) for slot in slots} == {states["default_policy"][DEFAULT].step}
    before = module.get_state()
    result = algorithm.train()
    assert np.isfinite(result["learners"]["default_policy"]["total_loss"])
    after = module.get_state()
    assert all(not np.array_equal(before[name], after[name]) for name in before)


class Table(Images):
    """Random tables of bytes, which the old Rays flattened for their networks."""

    observation_space = gymnasium.spaces.Box(0, 255, (6, 4), np.uint8)


@pytest.mark.parametrize("trial", ["0.8.5-ppo-table", "0.8.5-dqn-table"])
def test_training_goes_on_with_tables_of_bytes(trial):
    algorithm = compat.load(MUSEUM / "trials" / trial / "checkpoint_1", env=Table)
    before = {k: v.detach().clone() for k, v in algorithm.get_module().named_parameters()}
    # Until Ray 2.52, all steps ever sampled count for the first iteration after a restore, so
    # on a slow machine it can end before enough are sampled to learn from.
    algorithm.train()
    result = algorithm.train()
    assert result["training_iteration"] == 3
    after = dict(algorithm.get_module().named_parameters())
    assert any((before[name] != after[name]).any() for name in before)


OF_TRAINERS = {
    "PPOTrainer": {"train_batch_size": 100, "sgd_minibatch_size": 50, "num_sgd_iter": 1},
    "DQNTrainer": {"learning_starts": 20, "timesteps_per_iteration": 80},
}


@pytest.mark.parametrize(
    ("name", "ray", "last"),
    [
        ("PPOTrainer", None, [5, [5, 5], 1]),
        ("DQNTrainer", None, [5, [5, 5], 1]),
        ("PPOTrainer", "today", [5, [3, 3], 2]),
    ],
)
def test_a_new_trainer_learns_from_images_of_bytes(name, ray, last, make):
    """It died in its first step. Old filters end in one pixel, today's need not."""
    config = {"env": Images, "num_workers": 0, "min_iter_time_s": 0, **OF_TRAINERS[name]}
    config["model"] = {"conv_filters": [[4, [3, 3], 2], last]}
    trainer = make(name, config=config, legacy_ray=ray)
    before = trainer.get_weights()["default_policy"]
    for _ in range(2):  # Ray 2.40's first iteration of DQN ends before learning starts
        result = trainer.train()
    assert result["timesteps_total"] >= 160
    after = trainer.get_weights()["default_policy"]
    convolutions = [part for part, array in after.items() if array.ndim == 4]
    assert convolutions
    assert any((after[part] != before[part]).any() for part in convolutions)
    assert trainer.compute_action(Images.observation_space.sample()) in range(3)
