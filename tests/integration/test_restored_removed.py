"""`Trainer.restore` of old checkpoints of algorithms that Ray removed, and of its own then."""

import numpy as np
import pytest

import rllib_compat as compat
from rllib_compat import ray_versions
from rllib_compat.convert.decide import decide
from rllib_compat.formats import layouts
from rllib_compat.neutral.spaces import to_gymnasium
from tests.legacy.cases import all_cases
from tests.legacy.networks import given_if_asked
from tests.marks import TRAINERS
from tests.trained import environment, record

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

#: Case → the optimizers that go on, and after how many updates.
CASES = {
    "1.13.0/banditlints-torch-arms": {},
    "1.13.0/banditlinucb-torch-items": {},
    "2.0.1/crr-torch-box": {"actor": 12, "critic": 12},
    "1.13.0/rnnsac-torch-single": {"policy": 7, "qf": 7, "alpha": 7},
    "1.13.0/maddpg-tf-two": {},
}


def trainer_of(case, plan, folder):
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
    if case.algorithm == "CRR":
        ((observations, actions),) = spaces.values()
        record(folder, observations, actions)
        config.update(input=str(folder), observation_space=observations, action_space=actions)
    return getattr(compat, f"{case.algorithm}Trainer")(config=config)


@pytest.mark.parametrize("name", CASES)
def test_a_trainer_goes_on_from_an_old_checkpoint_and_from_its_own(name, tmp_path):
    case = next(case for case in all_cases() if str(case) == name)
    plan = decide(layouts.read(case.checkpoint), given_if_asked(case))
    (tmp_path / "steps").mkdir()
    trainer = trainer_of(case, plan, tmp_path / "steps")
    try:
        trainer.restore(str(case.checkpoint))
        module = ray_versions.local_learner(trainer.algorithm).module
        for policy_id, network in plan.networks.items():
            state = module[policy_id].get_state()
            for part, array in network.module_state().items():
                np.testing.assert_array_equal(state[part], array)
        assert updates_of(trainer, plan) == CASES[name]
        before = trainer.get_weights()
        result = trainer.train()
        assert result["training_iteration"] == case.about["iteration"] + 1
        samples = case.algorithm != "CRR"
        if samples:
            assert result["timesteps_total"] > plan.checkpoint.counters.env_steps
        after = trainer.get_weights()
        for policy_id, arrays in before.items():
            assert any((after[policy_id][part] != old).any() for part, old in arrays.items())
        path = trainer.save(str(tmp_path / "own"))
        trainer.train()
        trainer.restore(path)
        for policy_id, arrays in after.items():
            for part, array in trainer.get_weights()[policy_id].items():
                np.testing.assert_array_equal(array, arrays[part])
        again = trainer.train()
        assert again["training_iteration"] == result["training_iteration"] + 1
        if samples:
            assert again["timesteps_total"] > result["timesteps_total"]
    finally:
        trainer.stop()


def updates_of(trainer, plan):
    """How many updates each optimizer has made that made some."""
    learner = ray_versions.local_learner(trainer.algorithm)
    return {
        name.removeprefix(f"{policy_id}_"): int(next(iter(optimizer.state.values()))["step"])
        for policy_id in plan.networks
        for name, optimizer in learner.get_optimizers_for_module(policy_id)
        if optimizer.state
    }
