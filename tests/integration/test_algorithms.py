"""Algorithms besides PPO in the installed Ray: loaded, trained on, or acting alone."""

import sys
import time
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from rllib_compat import Given, Trainer, convert, verify
from rllib_compat.adapters import as_parquet
from rllib_compat.conversion import make_module_source, recordings
from rllib_compat.errors import CheckpointError, VerificationError
from rllib_compat.formats import layouts
from rllib_compat.networks import load_rl_modules
from rllib_compat.neutral import ObservationFilter, RunningStat, spaces
from rllib_compat.ray_versions import algorithms, connectors, learners
from tests import trained
from tests.legacy.cases import find
from tests.marks import CONVERSIONS, marked
from tests.unit.offline.test_recordings import played, record

pytestmark = CONVERSIONS

APPO = find(ray="0.8.5", algorithm="APPO")[0]
IMPALA = find(ray="0.7.6", algorithm="IMPALA")[0]
MARWIL = find(ray="0.7.6", algorithm="MARWIL")[0]
BC = find(ray="2.0.1", algorithm="BC")[0]
CQL = find(ray="2.0.1", algorithm="CQL")[0]
ES = find(ray="1.13.0", algorithm="ES")[0]
R2D2 = find(ray="1.13.0", algorithm="R2D2")[0]
CUSTOM = next(c for c in find(ray="2.0.1") if c.variant == "custommodel")
TWO_POLICIES = next(c for c in find(ray="2.3.1") if c.variant == "ma-tuples")


def given(case, **more):
    return Given(
        algorithm=case.algorithm,
        env="CartPole-v1",
        observation_spaces={None: spaces.box(-np.inf, np.inf, (4,))},
        action_spaces={None: spaces.Discrete(2)},
        **more,
    )


@pytest.mark.matrix
@pytest.mark.parametrize("case", [APPO, IMPALA], ids=str)
def test_asynchronous_algorithms_train_on(case, tmp_path, load):
    done = convert(case.checkpoint, tmp_path / "new", given=given(case), inputs=50)
    algorithm = load(tmp_path / "new")
    assert algorithm.iteration == done.checkpoint.counters.iteration
    state = learners.local_learner(algorithm) if algorithm.config.num_learners == 0 else None
    if case is APPO and state is not None:
        stored = done.networks["default_policy"].arrays["target.hidden.0.kernel"]
        names = state.module["default_policy"].get_state()
        np.testing.assert_allclose(names["_old_encoder.encoder.net.mlp.0.weight"].T, stored)
    before = algorithm.iteration
    assert algorithm.train()["training_iteration"] == before + 1


class Slow(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, config=None):
        self.observation = np.zeros(2, np.float32)

    def reset(self, *, seed=None, options=None):
        return self.observation, {}

    def step(self, action):
        time.sleep(0.02)
        return self.observation, 0.0, False, False, {}


@pytest.mark.matrix
@pytest.mark.newest
@pytest.mark.parametrize("algorithm", marked(["APPO", "IMPALA"], {"IMPALA"}))
def test_asynchronous_algorithms_wait_for_slow_environments_and_do_not_keep_a_core_busy(algorithm):
    config = {"num_workers": 1, "rollout_fragment_length": 10, "train_batch_size": 20}
    trainer = Trainer(config=config, env=Slow, algorithm=algorithm)
    steps, step = [], trainer.algorithm.training_step
    trainer.algorithm.training_step = lambda: steps.append(time.monotonic()) or step()
    try:
        while trainer.train()["timesteps_total"] < 40:
            pass
    finally:
        trainer.stop()
    assert len(steps) / (steps[-1] - steps[0]) < 100  # thousands where it only asks


@pytest.mark.newest
def test_cql_trains_on_with_recordings():
    """Ray's own iteration of one batch dies in its learner (2.44 – 2.60)."""
    assert trained.train(CQL) == trained.LEARNED


def test_marwil_loads_without_its_recordings_and_trains_on_with_others(tmp_path, load):
    done = convert(MARWIL.checkpoint, tmp_path / "new", given=given(MARWIL), inputs=50)
    rules = {finding.rule for finding in done.report.findings}
    assert {"offline-data", "moving-average"} <= rules
    algorithm = load(tmp_path / "new")
    mean = done.checkpoint.policies["default_policy"].extra["moving_average_of_advantage_norm"]
    assert algorithm.config.moving_average_sqd_adv_norm_start == mean

    (tmp_path / "old").mkdir()
    episodes = [played(30, end="terminated", id_=str(i)) for i in range(4)]
    for episode in episodes:  # of two numbers; CartPole has four
        episode.observations.data = np.tile(episode.observations.data, 2)
    record(tmp_path / "old", episodes)
    config = algorithm.config.copy(copy_frozen=False)
    config.training(train_batch_size_per_learner=32)
    config.offline_data(
        input_=as_parquet(str(tmp_path / "old")),
        input_read_method="read_parquet",
        input_read_episodes=True,
        dataset_num_iters_per_learner=1,
    )
    config.reporting(min_train_timesteps_per_iteration=0, min_time_s_per_iteration=0)
    again = algorithms.build_algorithm(config)
    try:
        with algorithms.restores_offline():
            again.restore_from_path(str(tmp_path / "new"))
        assert again.train()["training_iteration"] == algorithm.iteration + 1
    finally:
        again.stop()


@pytest.mark.matrix
def test_bc_loads_as_todays_bc_and_tells_that_its_value_function_is_gone(tmp_path, load):
    done = convert(BC.checkpoint, tmp_path / "new", given=given(BC), inputs=50)
    dropped = [f.message for f in done.report.findings if f.verdict.value == "dropped"]
    assert any("_value_branch._model.0.weight" in message for message in dropped)
    assert type(load(tmp_path / "new")).__name__ == "BC"


def test_es_acts_as_it_did_behind_its_filter_and_trains_on(tmp_path, load):
    more = {"noise_size": 100_000, "train_batch_size": 40, "episodes_per_batch": 2}
    told = given(ES, overrides={"num_workers": 0, **more})
    convert(ES.checkpoint, tmp_path / "new", given=told, inputs=50)
    expected = ES.expected("default_policy")
    algorithm = load(tmp_path / "new")
    seen = connectors.observation_filter(algorithm.env_runner)
    count = seen.running_stats.n
    assert count > 100
    raw = expected.arrays["obs"].reshape(16, 4)
    filtered = np.stack([seen(row, update=False) for row in raw]).astype(np.float32)
    loaded = load_rl_modules(tmp_path / "new", ["default_policy"])["default_policy"]
    computed = loaded({"obs": filtered})
    np.testing.assert_allclose(
        computed["action_dist_inputs"], expected.arrays["out/action_dist_inputs"], atol=1e-4
    )
    assert verify(ES.checkpoint, tmp_path / "new", given=told).equal
    steps = algorithm.train()["env_runners"]["num_env_steps_sampled"]
    assert steps >= 40
    assert seen.running_stats.n >= count + steps


def test_modules_that_were_converted_convert_again(tmp_path):
    told = replace(given(R2D2), algorithm="DQN")  # which trains no LSTM
    convert(R2D2.checkpoint, tmp_path / "one", given=told, inputs=50)
    again = convert(tmp_path / "one", tmp_path / "two", given=Given(algorithm="DQN"), inputs=50)
    assert again.largest_difference < 1e-5
    assert layouts.read(tmp_path / "two").policies.keys() == {"default_policy"}


MODULE = """
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from torch import nn


class Own(TorchRLModule, ValueFunctionAPI):
    def setup(self):
        hidden = self.model_config["hidden"]
        self.enc = nn.Sequential(nn.Linear(self.observation_space.shape[0], hidden), nn.ELU())
        self.pi = nn.Linear(hidden, int(self.action_space.n))
        self.vf = nn.Linear(hidden, 1)

    def _forward(self, batch, **kwargs):
        return {Columns.ACTION_DIST_INPUTS: self.pi(self.enc(batch[Columns.OBS]))}

    def compute_values(self, batch, embeddings=None):
        return self.vf(self.enc(batch[Columns.OBS])).squeeze(-1)


class Other(Own):
    def setup(self):
        super().setup()
        self.more = nn.Linear(1, 1)
"""


def test_a_custom_models_weights_go_into_the_module_that_the_user_names(
    tmp_path, load, monkeypatch
):
    (tmp_path / "a_users_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = given(CUSTOM, model="a_users_module:Own")
    done = convert(CUSTOM.checkpoint, tmp_path / "new", given=known, inputs=50)
    proof = [f.message for f in done.report.findings if f.rule == "verify"]
    assert proof == ["all 163 numbers are the same in the new files"]
    expected = CUSTOM.expected("default_policy")
    computed = load_rl_modules(tmp_path / "new", ["default_policy"])["default_policy"](
        {"obs": expected.inputs}
    )
    np.testing.assert_allclose(computed["action_dist_inputs"], expected.logits, atol=1e-5)
    assert load(tmp_path / "new").iteration == done.checkpoint.counters.iteration

    wrong = given(CUSTOM, model="a_users_module:Other")
    with pytest.raises(CheckpointError, match=r"without weights in the checkpoint: more\.bias"):
        convert(CUSTOM.checkpoint, tmp_path / "other", given=wrong)
    with pytest.raises(CheckpointError, match="can't be imported"):
        convert(CUSTOM.checkpoint, tmp_path / "other", given=given(CUSTOM, model="no_such:X"))
    sys.modules.pop("a_users_module", None)


@pytest.mark.parametrize("case", find(variant="custommodel", ray=("1.13.0", "2.3.1")), ids=str)
def test_a_module_that_was_written_for_a_custom_model_computes_what_the_old_ray_recorded(
    case, tmp_path, monkeypatch
):
    arrays = recordings.load(case.path / "expected.npz")
    made = make_module_source(layouts.read(case.checkpoint), given(case), arrays)
    assert made.activation == "elu"
    name = f"written_for_{case.framework}"
    (tmp_path / f"{name}.py").write_text(made.source)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = given(case, model=f"{name}:MyModule")
    done = convert(case.checkpoint, tmp_path / "new", given=known, inputs=20, recorded=arrays)
    proven = {row.output for row in done.differences if row.kind == "recorded"}
    assert {"action_dist_inputs", "vf_preds"} <= proven
    assert done.report.facts["result"] == "resumes training"
    edited = made.source.replace("nn.functional.elu", "torch.relu")
    (tmp_path / f"{name}_edited.py").write_text(edited)
    wrong = given(case, model=f"{name}_edited:MyModule")
    with pytest.raises(VerificationError, match="action_dist_inputs is off"):
        convert(case.checkpoint, tmp_path / "wrong", given=wrong, inputs=20, recorded=arrays)
    assert not (tmp_path / "wrong").exists()
    sys.modules.pop(name, None)


def test_each_policys_filter_goes_on_whatever_the_agents_are_called(tmp_path, load, monkeypatch):
    """No museum case has both, so the filters are put in while it is read."""
    read = layouts.read

    def with_filters(path, *budget):
        checkpoint = read(path, *budget)
        if not checkpoint.source.layout.startswith("1"):
            return checkpoint
        policies = []
        for seen, policy in enumerate(checkpoint.policies.values(), start=100):
            size = policy.observation_space.flat_size()
            stat = RunningStat(seen, np.full(size, seen / 100), np.full(size, 99.0))
            own = ObservationFilter("MeanStdFilter", stats=(stat,))
            policies.append(replace(policy, observation_filter=own))
        config = {**checkpoint.config, "observation_filter": "MeanStdFilter"}
        checkpoint = replace(checkpoint, config=config, config_is_complete=False)
        return checkpoint.with_policies(policies)

    monkeypatch.setattr(layouts, "read", with_filters)
    done = convert(TWO_POLICIES.checkpoint, tmp_path / "new", inputs=50)
    (first, second) = done.networks
    algorithm = load(tmp_path / "new")
    state = algorithm.env_runner.get_state()["env_to_module_connector"]["PolicyMeanStdFilter"]
    counts = {policy: own["running_stats"][0]["num_pushes"] for policy, own in state.items()}
    assert counts == {first: 100, second: 101}
    again = read(tmp_path / "new").policies
    assert again[second].observation_filter.stats[0].count == 101
