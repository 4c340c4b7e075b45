"""`Trainer.restore` of old checkpoints of algorithms that Ray removed, and of its own then.

And of those that learn from recordings, removed or not, which count what they read.
"""

import numpy as np
import pytest

import rllib_compat as compat
from rllib_compat import registry
from rllib_compat.conversion import prepare
from rllib_compat.errors import NotConvertibleError
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import ModuleNetwork
from rllib_compat.neutral.spaces import to_gymnasium
from rllib_compat.ray_versions import algorithms, learners
from rllib_compat.trainer import coefficients
from tests.legacy.cases import case_of
from tests.legacy.networks import given_if_asked, recorded
from tests.marks import TRAINERS, marked
from tests.trained import environment, record

pytestmark = [*TRAINERS, pytest.mark.newest, pytest.mark.usefixtures("one_ray")]

#: Case → the optimizers that go on, and after how many updates.
CASES = {
    "1.13.0/banditlints-torch-arms": {},
    "1.13.0/banditlinucb-torch-items": {},
    "2.0.1/crr-torch-box": {"actor": 12, "critic": 12},
    "1.13.0/rnnsac-torch-single": {"policy": 7, "qf": 7, "alpha": 7},
    "1.13.0/maddpg-tf-two": {},
    "1.0.1/banditlinucb-torch-items": {},
    "1.13.0/r2d2-torch-prev": {"default_optimizer": 7},
    "1.13.0/ppo-torch-small-relu": {"default_optimizer": 16},
    "2.8.1/rnnsac-torch-discrete": {"policy": 7, "qf": 7, "alpha": 7, "qf_twin": 7},
    "2.8.1/maddpg-tf-two": {},
    "2.0.1/sac-torch-cont": {"policy": 88, "qf": 88, "alpha": 88, "qf_twin": 88},
    "2.0.1/cql-torch-default": {"policy": 1, "qf": 1, "alpha": 1, "qf_twin": 1},
}


#: One of each network; the nightly run has the others.
ON_EACH_PUSH = {
    "1.0.1/banditlinucb-torch-items",
    "2.0.1/crr-torch-box",
    "1.13.0/rnnsac-torch-single",
    "1.13.0/maddpg-tf-two",
    "1.13.0/r2d2-torch-prev",
    "1.13.0/ppo-torch-small-relu",
    "2.0.1/sac-torch-cont",
}


def trainer_of(make, case, plan, folder):
    """A trainer of the old config, in an environment of the policies' own spaces."""
    spaces = {
        name: tuple(
            to_gymnasium(space.original_space or space)
            for space in (policy.observation_space, policy.action_space)
        )
        for name, policy in plan.checkpoint.policies.items()
    }
    config = {**case.config, "env": environment(spaces)}
    if len(spaces) > 1:
        config["multiagent"] = {
            "policies": {
                name: (None, *pair, {"agent_id": i})
                for i, (name, pair) in enumerate(sorted(spaces.items()))
            },
            "policy_mapping_fn": lambda agent, *_, **__: agent,
        }
    if registry.of(case.algorithm).offline:
        ((observations, actions),) = spaces.values()
        record(folder, observations, actions)
        config.update(input=str(folder), observation_space=observations, action_space=actions)
    return make(f"{case.algorithm}Trainer", config=config)


def to_restore(make, name, folder):
    """A case of the museum, what is made of it, and a trainer of its config."""
    case = case_of(name)
    plan = prepare(read_checkpoint(case.checkpoint), given_if_asked(case))
    (folder / "steps").mkdir()
    return case, plan, trainer_of(make, case, plan, folder / "steps")


@pytest.mark.parametrize("name", marked(CASES, ON_EACH_PUSH))
def test_a_trainer_goes_on_from_an_old_checkpoint_and_from_its_own(make, name, tmp_path):
    case, plan, trainer = to_restore(make, name, tmp_path)
    trainer.restore(str(case.checkpoint))
    module = learners.local_learner(trainer.algorithm).module
    for policy_id, network in plan.networks.items():
        state = module[policy_id].get_state()
        for part, array in network.module_state().items():
            np.testing.assert_array_equal(state[part], array)
    assert updates_of(trainer, plan) == CASES[name]
    held = coefficients_of(trainer)
    for attribute, values in coefficients.from_checkpoint(plan.checkpoint).items():
        for policy_id, value in values.items() if attribute in held else ():
            assert held[attribute][policy_id] == pytest.approx(value, rel=1e-6)
    before = trainer.get_weights()
    result = trainer.train()
    assert result["training_iteration"] == case.about["iteration"] + 1
    assert result["timesteps_total"] > plan.checkpoint.counters.env_steps
    after = trainer.get_weights()
    for policy_id, arrays in before.items():
        assert any((after[policy_id][part] != old).any() for part, old in arrays.items())
    held = coefficients_of(trainer)
    path = trainer.save(str(tmp_path / "own"))
    trainer.train()
    trainer.restore(path)
    assert coefficients_of(trainer) == held
    for policy_id, arrays in after.items():
        for part, array in trainer.get_weights()[policy_id].items():
            np.testing.assert_array_equal(array, arrays[part])
    again = trainer.train()
    assert again["training_iteration"] == result["training_iteration"] + 1
    assert again["timesteps_total"] > result["timesteps_total"]


RECORDED = [f"2.0.1/{name}" for name in ("crr-torch-discrete", "marwil-torch-default")]


@pytest.mark.parametrize("name", marked([*RECORDED, "2.0.1/bc-torch-default"], RECORDED))
def test_recorded_steps_are_counted_on_after_a_restore(make, name, tmp_path):
    """`timesteps_total` began at 0 again, so a stop criterion came an old training too late."""
    case, plan, trainer = to_restore(make, name, tmp_path)
    trainer.restore(str(case.checkpoint))
    result = trainer.train()
    read = result["num_env_steps_trained_this_iter"]
    assert read > 0
    assert result["timesteps_total"] == plan.checkpoint.counters.env_steps + read
    path = trainer.save(str(tmp_path / "own"))
    assert read_checkpoint(path).counters.env_steps == result["timesteps_total"]
    trainer.train()
    trainer.restore(path)
    assert trainer.train()["timesteps_total"] == result["timesteps_total"] + read


#: Cases whose networks are not those that a trainer of their config begins with.
OTHERS = [
    "0.7.6/sac-tf-small",
    # A trainer's layers are behind the LSTM; where all have one size, the old arrays fit.
    "1.13.0/rnnsac-torch-post",
    "0.5.3/ppo-tf-lstm-noshare",
    "2.0.1/dqn-torch-noduel",
    "1.13.0/banditlinucb-tf2-arms",  # it counted its scores twice
    # The trainer told its own default of `vf_share_layers` as if the old config had said it.
    "1.13.0/ppo-tf2-images-share-tanh",
    "1.13.0/r2d2-torch-prev",
]
DISCRETE = "1.13.0/sac-torch-ma-two"
OTHERS_ON_EACH_PUSH = {
    "0.7.6/sac-tf-small",
    "1.13.0/rnnsac-torch-post",
    "2.0.1/dqn-torch-noduel",
    "1.13.0/banditlinucb-tf2-arms",
}


@pytest.mark.parametrize("name", [*marked(OTHERS, OTHERS_ON_EACH_PUSH), DISCRETE])
def test_a_trainer_takes_networks_that_are_not_those_of_its_config(make, name, tmp_path):
    """A restored SAC went on with the random weights that it was built with."""
    case = case_of(name)
    plan = prepare(read_checkpoint(case.checkpoint), given_if_asked(case))
    trainer = trainer_of(make, case, plan, tmp_path)
    trainer.restore(str(case.checkpoint))
    learner = learners.local_learner(trainer.algorithm)
    for policy_id, network in plan.networks.items():
        if policy_id in getattr(learner, "curr_log_alpha", {}):
            alpha = float(learner.curr_log_alpha[policy_id].detach()[0])
            old = plan.checkpoint.policies[policy_id].log_alpha
            assert alpha == pytest.approx(old, abs=1e-6)
        acts_as_recorded(trainer, case, policy_id, network)
    built = trainer.algorithm
    trainer.restore(str(case.checkpoint))
    assert trainer.algorithm is built
    assert trainer.train()["training_iteration"] == case.about["iteration"] + 1


@pytest.mark.parametrize(
    "name",
    marked(
        [
            "0.7.6/sac-tf-small",
            "1.13.0/rnnsac-torch-post",
            "1.13.0/banditlinucb-tf2-arms",
            "1.13.0/r2d2-torch-prev",
            "2.0.1/dqn-torch-noduel",  # a module of Ray's own, of another shape
        ],
        {"0.7.6/sac-tf-small", "2.0.1/dqn-torch-noduel"},
    ),
)
def test_another_trainer_takes_them_from_what_the_first_one_saved(make, name, tmp_path):
    case = case_of(name)
    plan = prepare(read_checkpoint(case.checkpoint), given_if_asked(case))
    trainer, other = (trainer_of(make, case, plan, tmp_path) for _ in range(2))
    trainer.restore(str(case.checkpoint))
    other.restore(trainer.save(str(tmp_path / "own")))
    for policy_id, network in plan.networks.items():
        acts_as_recorded(other, case, policy_id, network)
    other.train()


def test_a_trainer_goes_on_where_old_networks_cant_be_built(make, tmp_path, monkeypatch):
    """It was left with an algorithm that had been stopped."""
    name = "0.7.6/sac-tf-small"
    case = case_of(name)
    plan = prepare(read_checkpoint(case.checkpoint), given_if_asked(case))
    trainer = trainer_of(make, case, plan, tmp_path)
    build, tried = algorithms.build_algorithm, []

    def fails_once(config):
        tried.append(config)
        if len(tried) == 1:
            raise RuntimeError("no such network here")
        return build(config)

    trainer.train()
    before, held = trainer.get_weights(), {"curr_log_alpha": {"default_policy": -1.5}}
    coefficients.restore(trainer.algorithm, held)
    monkeypatch.setattr(algorithms, "build_algorithm", fails_once)
    with pytest.raises(NotConvertibleError, match="no such network"):
        trainer.restore(str(case.checkpoint))
    for policy_id, arrays in before.items():
        for part, array in trainer.get_weights()[policy_id].items():
            np.testing.assert_array_equal(array, arrays[part])
    assert coefficients_of(trainer) == held
    assert trainer.train()["training_iteration"] == 2


def coefficients_of(trainer):
    """What the losses are computed with, by where learners have it and by policy."""
    learner = learners.local_learner(trainer.algorithm)
    return learners.coefficients(learner, coefficients.STORED)


def acts_as_recorded(trainer, case, policy_id, network):
    """Holds what a trainer learns and acts with against what the old network gave."""
    inputs, outputs = recorded(case, policy_id, network)
    learned = learners.local_learner(trainer.algorithm).module[policy_id]
    made = ModuleNetwork(learned)(inputs)
    for name, array in outputs.items():
        np.testing.assert_allclose(made[name], array, rtol=1e-4, atol=1e-5)
    acting = trainer.get_policy(policy_id).model.get_state()
    for name, array in learned.get_state().items():
        if name in acting and "q" not in name:  # env runners have no use for critics
            np.testing.assert_array_equal(acting[name], array)


def updates_of(trainer, plan):
    """How many updates each optimizer has made that made some."""
    learner = learners.local_learner(trainer.algorithm)
    return {
        name.removeprefix(f"{policy_id}_"): int(next(iter(optimizer.state.values()))["step"])
        for policy_id in plan.networks
        for name, optimizer in learner.get_optimizers_for_module(policy_id)
        if optimizer.state
    }


#: Algorithm → an environment and its own keys; what they save of new networks names no old one.
OWN = {
    "ES": {"env": "Pendulum-v1", "episodes_per_batch": 2, "noise_size": 100_000},
    "ARS": {"env": "CartPole-v1", "num_rollouts": 2, "rollouts_used": 2, "noise_size": 100_000},
    "DDPG": {"env": "Pendulum-v1", "twin_q": True, "use_state_preprocessor": True},
    "TD3": {"env": "Pendulum-v1", "actor_hiddens": [9], "critic_hiddens": [7, 5]},
}


@pytest.mark.parametrize("name", marked(OWN, {"ES", "DDPG"}))
def test_what_a_trainer_saves_of_a_new_network_is_loaded_without_it(name, make, tmp_path):
    import torch

    evolution = name in ("ES", "ARS")
    small = {"num_workers": int(evolution), "train_batch_size": 16, "min_iter_time_s": 0}
    small |= {} if evolution else {"learning_starts": 50, "timesteps_per_iteration": 100}
    small |= {"model": {"fcnet_hiddens": [6]}, **OWN[name]}
    trainer = make(f"{name}Trainer", config=small)
    trainer.train()
    path = trainer.save(str(tmp_path / "saved"))
    mine = learners.local_learner(trainer.algorithm)
    module = mine.module["default_policy"].unwrapped()
    space = module.observation_space
    seen = {"obs": torch.from_numpy(np.stack([space.sample().clip(-3, 3) for _ in range(5)]))}
    loaded = compat.load(path)
    theirs = learners.local_learner(loaded)
    again = theirs.module["default_policy"].unwrapped()
    with torch.no_grad():
        before, after = (m.forward_inference(seen) for m in (module, again))
    key = "actions" if "actions" in after else "action_dist_inputs"
    was = before.get(key, before.get("action_dist_inputs"))
    np.testing.assert_allclose(after[key], was, rtol=1e-5, atol=1e-6)
    moments = [
        sorted(
            int(slot["step"])
            for _, o in learner.get_optimizers_for_module("default_policy")
            for slot in o.state.values()
            if "step" in slot
        )
        for learner in (mine, theirs)
    ]
    assert moments[0] == moments[1]
    loaded.train()
