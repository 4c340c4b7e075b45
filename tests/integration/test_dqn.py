"""DQN and its relatives go on on today's Ray."""

import numpy as np
import pytest

from rllib_compat import Given, convert, registry
from rllib_compat.networks import DEFAULT, TARGET_PREFIX, load_rl_modules, plan_optimizers
from rllib_compat.ray_versions import learners
from tests.legacy.cases import find
from tests.marks import CONVERSIONS

pytestmark = CONVERSIONS


def case_of(name):
    (case,) = [case for case in find(algorithm=registry.family("DQN")) if str(case) == name]
    return case


@pytest.mark.matrix
@pytest.mark.parametrize(
    "name",
    [
        "1.13.0/dqn-torch-hiddens2",  # today's default module
        "0.8.5/dqn-tf-nohiddens-dueling",  # ours
        "1.13.0/simpleq-tf-default",  # DQN takes the place of SimpleQ
    ],
)
def test_training_goes_on_where_it_stopped(name, tmp_path):
    from ray.rllib.algorithms.algorithm import Algorithm

    case = case_of(name)
    given = Given(algorithm=case.algorithm, env="CartPole-v1")
    done = convert(case.checkpoint, tmp_path / "new", given=given, inputs=50)
    (network,) = done.networks.values()
    (old,) = done.checkpoint.policies.values()
    steps = done.checkpoint.counters.env_steps
    algorithm = Algorithm.from_checkpoint(str(tmp_path / "new"))
    try:
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
    finally:
        algorithm.stop()


def test_r2d2_goes_on_with_its_network_its_target_and_its_optimizer(tmp_path):
    from ray.rllib.algorithms.algorithm import Algorithm

    case = case_of("1.13.0/r2d2-torch-v-hiddens-noh")
    told = Given(algorithm="R2D2", env="CartPole-v1", overrides={"learning_starts": 60})
    done = convert(case.checkpoint, tmp_path / "new", given=told, inputs=50)
    assert not [row for row in done.report if "its eps was" in row.message]
    (network,) = done.networks.values()
    (old,) = done.checkpoint.policies.values()
    algorithm = Algorithm.from_checkpoint(str(tmp_path / "new"))
    try:
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
    finally:
        algorithm.stop()


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
