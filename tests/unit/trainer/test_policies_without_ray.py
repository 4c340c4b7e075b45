"""Policies of trainers for which no Ray is started: what they learn, and what they export."""

import contextlib
import json
import os
import re
from pathlib import Path
from typing import ClassVar
from unittest import mock

import numpy as np
import pytest
import ray
import torch
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.fcnet import FullyConnectedNetwork
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from ray.rllib.policy.policy import Policy
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.policy.view_requirement import ViewRequirement

import rllib_compat as compat
from rllib_compat import gym
from rllib_compat.errors import CompatError, GoneError, ObservationError
from rllib_compat.legacy import lookup
from rllib_compat.trainer import policy_class
from tests import legacy_api
from tests.legacy.policies import calls, learning
from tests.marks import OTHERS_WARNINGS, marked

pytestmark = OTHERS_WARNINGS

RECORDED = Path(learning.__file__).with_name("learning_steps")
FOLDERS = {f"{path.parent.name}-{path.name}": path for path in sorted(RECORDED.glob("*/*"))}
NEWEST = [case for case in FOLDERS if case.startswith("1.13")]
#: Arrays of target networks, by their names in today's modules.
TARGET = re.compile("target_")
#: Case → statistics that are not the same number: the old Rays told the first of sequences with
#: their padding, and the other as it was after the step (until 1.0).
NOT_COMPARED = {"ppo-lstm": {"vf_explained_var"}, "sac": {"log_alpha_value"}}


@contextlib.contextmanager
def without_ray(make):
    nothing = {"init": mock.DEFAULT, "cluster_resources": dict, "put": lambda value, **_: value}
    with mock.patch.multiple(ray, **nothing):
        made = make()
        yield made
        made.stop()


def trainer_of(case, release, cls=compat.Trainer, **more):
    algorithm, config = calls.config_of(case)
    config = {**config, "framework": "torch", **more}
    env = calls.make_env(gym)
    return without_ray(lambda: cls(config, env=env, algorithm=algorithm, legacy_ray=release))


def checkpoint(folder, name):
    return next((folder / name).glob("checkpoint-*"))


def weights(trainer):
    return {name: np.array(array) for name, array in trainer.get_policy().get_weights().items()}


@pytest.mark.parametrize("case", marked(FOLDERS, [*NEWEST, "1.0.1-a2c"]))
def test_weights_after_some_steps_are_those_of_the_old_ray(case):
    recorded = FOLDERS[case]
    with trainer_of(recorded.name, recorded.parent.name) as trainer:
        told = learn_as_recorded(learning.learn, trainer, recorded)
    steps = json.loads((recorded / "told.json").read_text())["steps"]
    for ours, theirs in zip(told, steps, strict=True):
        names = sorted(ours.keys() & theirs.keys() - NOT_COMPARED.get(recorded.name, set()))
        assert names
        np.testing.assert_allclose(
            [ours[name] for name in names],
            [theirs[name] for name in names],
            rtol=1e-4,
            atol=1e-5,
            err_msg=str(names),
        )


@pytest.mark.parametrize("case", marked(FOLDERS, ["1.13.0-dqn"]))
def test_gradients_that_are_applied_make_the_same_steps(case):
    recorded = FOLDERS[case]
    # So they did in the old Rays, but for SAC, which refused its own gradients there.
    assert not json.loads((recorded / "told.json").read_text())["by_gradients_apart"]
    with trainer_of(recorded.name, recorded.parent.name) as trainer:
        learn_as_recorded(learning.learn_by_gradients, trainer, recorded)


def learn_as_recorded(learn, trainer, recorded):
    with np.load(recorded / "batch.npz", allow_pickle=False) as file:
        columns = dict(file)
    trainer.restore(checkpoint(recorded, "before"))
    before = weights(trainer)
    with learning.draws(torch):
        told = learn(trainer.get_policy(), lambda: SampleBatch(columns))
    found = weights(trainer)
    trainer.restore(checkpoint(recorded, "after"))
    for name, array in weights(trainer).items():
        if TARGET.search(name):  # no checkpoint of theirs has targets; a step leaves them alone
            np.testing.assert_array_equal(found[name], before[name], err_msg=name)
        else:
            np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5, err_msg=name)
    return told


@pytest.mark.parametrize("case", marked(["ppo", "ppo-lstm", "dqn", "sac"], ["ppo-lstm"]))
def test_an_exported_model_is_called_as_that_of_ray_1_13(case, tmp_path):
    with trainer_of(case, "1.13.0") as trainer:
        policy = trainer.get_policy()
        model = torch.jit.load(policy.export_model(str(tmp_path)))
        for count in (1, 5):
            obs = torch.linspace(-1, 1, 4 * count).reshape(count, 4)
            state = [torch.full((count, *np.shape(s)), 0.3) for s in policy.get_initial_state()]
            given = {"obs": obs, "obs_flat": obs}
            out, after = model(given, state or [torch.ones(count)], torch.ones(count))
            _, states, told = policy.compute_actions(obs, state, explore=False)
            np.testing.assert_allclose(out.detach(), told["action_dist_inputs"], atol=1e-6)
            for ours, theirs in zip(after, states, strict=bool(state)):
                np.testing.assert_allclose(ours.detach(), theirs, atol=1e-6)


@pytest.mark.nightly
def test_an_exported_onnx_has_the_opset_that_is_asked_for_or_says_that_it_has_not(tmp_path, caplog):
    onnx = pytest.importorskip("onnx")
    with trainer_of("dqn", "1.13.0") as trainer:
        for asked in (18, 11):  # 11 is the default of old Rays
            caplog.clear()
            with mock.patch.dict(os.environ, {"ONNX_OPSET": str(asked)}):
                (folder,) = trainer.export_model(["onnx"], str(tmp_path / str(asked))).values()
            (opset,) = onnx.load(f"{folder}/model.onnx").opset_import
            said = f"has opset {opset.version}" in caplog.text
            assert said == (opset.version != asked)
    with pytest.raises(CompatError, match="'model', 'checkpoint', 'onnx'"):
        trainer.export_model("h5")


@pytest.mark.parametrize("case", marked(["ppo", "dqn", "sac"], ["ppo"]))
def test_each_name_of_each_era_is_there_or_says_what_to_do(case):
    with trainer_of(case, "1.13.0") as trainer:
        policy = trainer.get_policy()
        for kind, asked in (("policy", policy), ("model", policy.model)):
            for name in legacy_api.names_of(kind):
                with contextlib.suppress(GoneError):  # which says what to do
                    getattr(asked, name)
        if case == "ppo":
            assert policy.lr_schedule.value(7) == pytest.approx(policy.cur_lr)
            assert policy.entropy_coeff_schedule.value(7) == policy.entropy_coeff


class Reading(FullyConnectedNetwork):
    """A model that reads weights from a file, as `trainer.import_model` asked for it."""

    def import_from_h5(self, file):
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.fill_(float(Path(file).read_text("utf-8")))


def test_a_model_of_ones_own_imports_weights(tmp_path):
    ModelCatalog.register_custom_model("reading", Reading)
    with trainer_of("ppo", "1.13.0", model={"custom_model": "reading"}) as trainer:
        (tmp_path / "weights.h5").write_text("0.5", "utf-8")
        trainer.import_model(str(tmp_path / "weights.h5"))
        assert all(np.all(array == 0.5) for array in weights(trainer).values())
        with pytest.raises(FileNotFoundError):
            trainer.import_model("nothing")


def test_what_is_sampled_by_hand_is_no_part_of_a_train_batch():
    with trainer_of("ppo", "1.13.0") as trainer:
        worker = trainer.workers.local_worker()
        assert [worker.sample().count for _ in range(2)] == [20, 20]
        results = [trainer.train() for _ in range(2)]
        # As in Ray 1.0.1 and 1.13.0.
        assert [result["timesteps_total"] for result in results] == [40, 80]
        assert [result["info"]["num_steps_trained"] for result in results] == [40, 80]
        assert [result["episodes_this_iter"] for result in results] == [8, 4]


def test_weights_of_other_names_are_refused():
    with trainer_of("ppo", "1.13.0") as trainer:
        before = trainer.get_weights()
        with pytest.raises(CompatError, match="no weights fc_1/kernel") as raised:
            trainer.set_weights({"default_policy": {"fc_1/kernel": np.zeros((3, 4))}})
        assert "get_weights()" in raised.value.fix
        name = next(iter(before["default_policy"]))
        trainer.set_weights({"default_policy": {name: before["default_policy"][name] + 1}})
        after = trainer.get_weights()["default_policy"]
        assert np.array_equal(after[name], before["default_policy"][name] + 1)


@pytest.mark.parametrize("name", ["local_replay_buffer", "optimizer", "train_exec_impl"])
def test_a_trainer_may_have_parts_of_its_own(name):
    class Own(compat.PPOTrainer):
        def __init__(self):
            """No Ray builds it."""

    trainer = Own()
    setattr(trainer, name, "own")
    assert getattr(trainer, name) == "own"


class Looking(TorchModelV2, torch.nn.Module):
    """A model that acts on the observation before the last, a view of its own name."""

    def __init__(self, obs_space, action_space, num_outputs, model_config, name):
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        torch.nn.Module.__init__(self)
        self.unused = torch.nn.Linear(1, 1)
        views = ViewRequirement("obs", shift="-1:0", space=obs_space)
        self.view_requirements["last_two"] = views

    def forward(self, input_dict, state, seq_lens):
        seen = input_dict["last_two"]
        return 9 * torch.stack([-seen[:, 0, 0], seen[:, 0, 0], 0 * seen[:, 0, 0]], 1), state

    def value_function(self):
        return self.unused(torch.zeros(1, 1))[0]


def test_a_view_in_the_input_reaches_the_model():
    ModelCatalog.register_custom_model("looking", Looking)
    with trainer_of("ppo", "1.13.0", model={"custom_model": "looking"}) as trainer:
        obs = np.zeros(4, np.float32)
        for first, action in ((1.0, 1), (-1.0, 0)):
            seen = np.stack([np.full_like(obs, first), obs])
            given = {"obs": obs, "last_two": seen}
            found = trainer.compute_single_action(input_dict=given, explore=False)
            assert found == action


class Asking(Policy):
    """A policy without a model, whose state is a list with an entry for each row."""

    infos: ClassVar = []

    def compute_actions(self, obs_batch, state_batches=None, info_batch=None, **_):
        self.infos.extend(info_batch)
        return [0] * len(obs_batch), [[[1.0, 2.0]] * len(obs_batch)], {}

    def get_initial_state(self):
        return [np.zeros(2)]

    def learn_on_batch(self, samples):
        return {"learner_stats": {"states": samples["state_in_0"].shape}}

    def get_weights(self):
        return {}

    def set_weights(self, weights):
        """There are none."""


def test_a_policy_of_ones_own_gets_infos_and_may_return_a_state_as_a_list():
    policies = {"own": (Asking, None, None, {})}
    agents = {"policies": policies, "policy_mapping_fn": lambda *_, **__: "own"}
    with trainer_of("ppo", "1.13.0", multiagent=agents) as trainer:
        Asking.infos.clear()
        batch = trainer.workers.local_worker().sample().policy_batches["own"]
        assert {type(info) for info in Asking.infos} == {dict}
        assert batch["state_out_0"].shape == (20, 2)


def test_a_policy_of_another_algorithm_has_the_settings_that_it_reads():
    classes = {"ppo": policy_class("PPOTorchPolicy"), "dqn": policy_class("DQNTorchPolicy")}
    policies = {name: (given, None, None, {}) for name, given in classes.items()}
    agents = {"policies": policies, "policy_mapping_fn": lambda *_, **__: "ppo"}
    with trainer_of("ppo", "1.13.0", multiagent=agents) as trainer:
        assert trainer.translation.api_stack == "old", "which nobody has to ask for"
        ppo, dqn = trainer.get_policy("ppo"), trainer.get_policy("dqn")
        assert "replay_buffer_config" not in ppo.config
        assert "capacity" in dqn.config["replay_buffer_config"]
        assert {name.partition(".")[0] for name in dqn.get_weights()} > {"advantage_module"}


@pytest.mark.parametrize("api_stack", ["new", "old"])
def test_a_hook_of_rllibs_own_is_part_of_its_algorithm(api_stack):
    own = type("Own", (policy_class("PPOTorchPolicy"),), {})
    made = compat.PPOTrainer.with_updates(
        default_policy=None if api_stack == "new" else own,
        after_optimizer_step=lookup("ray.rllib.agents.ppo.ppo", "update_kl"),
    )
    with trainer_of("ppo", "0.8.5", made, kl_target=100.0) as trainer:
        assert trainer.translation.api_stack == api_stack
        trainer.train()
        assert trainer.get_policy().kl_coeff == pytest.approx(0.1), "half of 0.2, once"


#: What only the old API stack trains.
ON_THE_OLD_STACK = {"exploration_config": {"type": "SoftQ", "temperature": 1.0}}


@pytest.mark.parametrize("config", [{}, ON_THE_OLD_STACK])
@pytest.mark.parametrize("wrong", [np.zeros((3, 1)), None, "a", np.full(3, np.nan), {"a": 1}])
def test_observations_that_no_network_takes_are_named(config, wrong):
    with trainer_of("ppo", "1.13.0", **config) as trainer:
        assert trainer.translation.api_stack == ("old" if config else "new")
        seen = trainer.get_policy().observation_space
        trainer.compute_single_action(seen.sample())
        with pytest.raises(ObservationError, match="is not of the space"):
            trainer.compute_single_action(wrong)
        with pytest.raises(ObservationError, match="is not of the space"):
            trainer.compute_actions({0: seen.sample(), 1: wrong})


@pytest.mark.parametrize("wrong", [np.zeros((2, 9)), [np.zeros(2), None], ["a"], 0.5])
def test_batches_that_no_policy_takes_are_named(wrong):
    with trainer_of("ppo", "1.13.0") as trainer:
        policy = trainer.get_policy()
        policy.compute_actions([policy.observation_space.sample()] * 2)
        for call in (policy.compute_actions, lambda obs: policy.compute_log_likelihoods([0], obs)):
            with pytest.raises(ObservationError, match="what preprocessors make"):
                call(wrong)


@pytest.mark.parametrize(
    ("algorithm", "env"),
    [
        ("APPO", "CartPole-v1"),
        ("ARS", "CartPole-v1"),
        ("BanditLinTS", "CartPole-v1"),
        ("BanditLinUCB", "CartPole-v1"),
        ("CRR", "Pendulum-v1"),
        ("SimpleQ", "CartPole-v1"),
        ("TD3", "Pendulum-v1"),
    ],
)
def test_what_people_ask_a_model_is_answered_or_has_a_sentence(algorithm, env, tmp_path):
    nothing = {"init": mock.DEFAULT, "cluster_resources": dict, "put": lambda value, **_: value}
    with mock.patch.multiple(ray, **nothing):
        made = compat.Trainer({"env": env, "num_workers": 0}, algorithm=algorithm)
        policy = made.get_policy()
        assert isinstance(policy.model.variables(), list)
        with pytest.raises(GoneError, match="Keras models are gone"):
            policy.model.base_model.summary()
        for name in ("policy_variables", "q_variables"):
            with pytest.raises(GoneError, match="named_parameters"):
                getattr(policy.model, name)
        policy.export_model(str(tmp_path))
        exported = torch.jit.load(tmp_path / "model.pt")
        obs = torch.as_tensor(np.stack([policy.observation_space.sample()] * 2))
        out, _ = exported({"obs": obs}, [torch.ones(2)], torch.ones(2, dtype=torch.int32))
        assert len(out) == 2
        made.stop()


def test_views_that_run_backwards_are_taken():
    """Torch makes no tensors of them: `advantages[::-1]`, a picture that was turned."""
    with trainer_of("ppo", "1.13.0") as trainer:
        policy = trainer.get_policy()
        seen = np.stack([policy.observation_space.sample() for _ in range(6)])
        actions, _, told = policy.compute_actions(seen[::-1], explore=False)
        likely = policy.compute_log_likelihoods(actions[::-1], seen)
        torch.testing.assert_close(
            likely.flip(0), policy.compute_log_likelihoods(actions, seen[::-1])
        )
        batch = SampleBatch(
            obs=seen,
            new_obs=seen,
            actions=actions,
            rewards=np.ones(6, np.float32),
            terminateds=np.arange(6) == 5,
            truncateds=np.zeros(6, bool),
            **{name: told[name] for name in ("action_logp", "action_dist_inputs", "vf_preds")},
        )
        batch = policy.postprocess_trajectory(batch)
        policy.learn_on_batch(SampleBatch({name: column[::-1] for name, column in batch.items()}))


def test_an_iteration_of_bandits_has_as_many_steps_whatever_each_round_samples():
    old = {"env": "CartPole-v1", "num_envs_per_worker": 3, "timesteps_per_iteration": 100}
    with without_ray(lambda: compat.BanditLinUCBTrainer(old)) as trainer:
        result = trainer.train()
    assert result["timesteps_total"] == 102, "34 rounds of three steps, as in Ray 1.13.0"
    for counted in (result, result["info"], result["counters"]):
        assert counted["num_agent_steps_trained"] == 102


def test_a_state_of_exploration_that_would_change_nothing_is_an_error():
    with trainer_of("dqn", "1.13.0") as trainer:
        exploration = trainer.get_policy().exploration
        with pytest.raises(GoneError, match="exploration_config"):
            exploration.set_state(exploration.get_state())
