"""Old configs on a GPU: where networks and samples are, and what a machine without one makes of it.

    pytest -n 8 --dist loadgroup -m gpu --junitxml=gpu.xml tests/integration/test_gpu.py
    python -m tests.gpu_table gpu.xml

needs a GPU; without one, everything here is skipped, and CI selects none of it. With
`COMPAT_TEST_DEVICE=cpu` all of it runs on CPUs, which shows what is wrong with the tests.
"""

from __future__ import annotations

import copy
import io
import os
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import pytest
import ray
import torch
from packaging.version import Version
from ray.rllib.models import ModelCatalog

import rllib_compat as compat
from rllib_compat.errors import CompatError
from rllib_compat.formats import read_checkpoint
from rllib_compat.ray_versions import env_runners
from rllib_compat.ray_versions.learners import local_learner
from rllib_compat.runtime import policies
from tests import matrix_inputs, training_matrix
from tests.marks import TRAINERS
from tests.training_matrix import ACTS, ACTS_OF, OF_SOME, SMALL, Case

DEVICE = os.environ.get("COMPAT_TEST_DEVICE", "cuda")

pytestmark = [
    *TRAINERS,
    pytest.mark.gpu,
    pytest.mark.nightly,
    pytest.mark.skipif(
        DEVICE == "cuda" and not torch.cuda.is_available(), reason="There is no GPU."
    ),
    pytest.mark.usefixtures("ray_with_gpu"),
]

CPUS = 6
#: The Rays that a config is of: the first of them that had its keys.
RAYS = ("1.13.0", "0.8.5", "2.3.1", "2.0.1", "1.0.1", "2.10.0", "0.6.6", "1.3.0")
#: Whose env runners learn, so that `num_gpus` gives nobody a GPU; whose policies have no weights.
LEARN_IN_RUNNERS, WITHOUT_WEIGHTS = ("DDPPO",), ("Random",)
#: Whose policies `load_policy` refuses or has by another name: a simplex, and groups of agents.
ACT_IN_RAY = ("MADDPG", "QMIX", *WITHOUT_WEIGHTS)
#: From this Ray on, env runners compute on the GPU that they have.
RUNNERS_HAVE_DEVICES = Version(ray.__version__) >= Version("2.41")


def case_of(algorithm: str, says: str = "default", seen: str = "vector", acts: str = "") -> Case:
    """A config of an algorithm, of a Ray that had the keys that it says."""
    said = training_matrix.said_at_once(says)
    of_ray = next(one for one in RAYS if training_matrix.can_be_said(algorithm, said, one))
    taken = set(ACTS).intersection(*(OF_SOME.get(one, ACTS) for one in says.split(" + ")))
    acts = acts or next(one for one in ACTS_OF.get(algorithm, ACTS) if one in taken)
    return Case(algorithm, says, seen, acts, of_ray, tells=True)


#: What else trains on a GPU: `Case`s of some algorithms.
OTHERS = (
    *(case_of(name, seen="image84") for name in ("PPO", "DQN", "IMPALA")),
    *(case_of(name, "lstm") for name in ("PPO", "IMPALA", "APPO", "A2C", "PG")),
    *(case_of("PPO", says) for says in ("attention", "attention, steps before", "apart")),
    *(case_of("DQN", says) for says in ("atoms + noisy", "dueling", "noise on weights", "soft")),
    *(
        case_of("DDPG", says)
        for says in ("noise on weights", "correlated noise", "noise on actions")
    ),
    *(case_of(name, "curiosity") for name in ("PPO", "A2C")),
    *(case_of(name, "custom model") for name in ("PPO", "DQN", "IMPALA")),
    *(case_of(name, "two policies") for name in ("PPO", "DQN", "SAC", "IMPALA", "TD3")),
    *(case_of(name, "worker") for name in ("PPO", "IMPALA", "APPO", "A3C", "DQN")),
    case_of("APEX", "worker priorities"),
    case_of("APPO", "KL of APPO"),
    case_of("A2C", "microbatches"),
    case_of("PPO", "evaluation of a worker"),
    case_of("PPO", "filter"),
    case_of("PPO", acts="continuous"),
    case_of("SAC", acts="continuous"),
    case_of("CRR", "exponential weights"),
    case_of("CRR", acts="continuous"),
    case_of("CQL", "Lagrangian"),
    case_of("MARWIL", acts="continuous"),
    case_of("QMIX", "sum of values"),
    case_of("R2D2", "stored states"),
    case_of("TD3", "twins"),
    case_of("DDPG", "state preprocessing"),
)
#: Every algorithm, and what else there is, with the GPUs that each asks for.
ASKED = [
    *((case_of(algorithm), gpus) for algorithm in SMALL for gpus in (0, 0.5, 1)),
    *((case, 1) for case in OTHERS),
]


def by_case(asked):
    """Parameters by which all tests of a case run in one process, one after the other."""
    return [
        pytest.param(
            (case, gpus),
            id=f"{case.algorithm}-{gpus}" + ("" if (case, gpus) in EACH else f"-{case}"),
            marks=pytest.mark.xdist_group(f"{case} {gpus}"),
        )
        for case, gpus in asked
    ]


EACH = ASKED[: 3 * len(SMALL)]
of_each_case = pytest.mark.parametrize("trained", by_case(ASKED), indirect=True)
of_some = pytest.mark.parametrize(
    "trained",
    by_case([(case_of(name), 1) for name in ("PPO", "DQN", "SAC")]),
    indirect=True,
)


@pytest.fixture(scope="session")
def ray_with_gpu(tmp_path_factory):
    """The Ray of this process, which has the GPU; results are written into a temporary folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        _start_ray(gpus=int(DEVICE == "cuda"))
        yield
        ray.shutdown()


def _start_ray(gpus):
    ModelCatalog.register_custom_model("linear", training_matrix.Linear)
    ray.init(
        num_cpus=CPUS,
        num_gpus=gpus,
        object_store_memory=256 * 1024**2,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
    )


class MachineWithoutGpu:
    """A process that sees no GPU, with a Ray of its own; another one after each that ends."""

    def __init__(self):
        self._pool = None

    def call(self, function, *arguments):
        """What a function of this file gives there."""
        if self._pool is None:
            self._pool = futures.ProcessPoolExecutor(1, get_context("spawn"))
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("CUDA_VISIBLE_DEVICES", "")
                return self._pool.submit(_there, function, *arguments).result(timeout=120)
        except (BrokenProcessPool, futures.TimeoutError):
            for process in list((self._pool._processes or {}).values()):
                process.kill()
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
            raise

    def stop(self):
        """Ends the process."""
        if self._pool is not None:
            self.call(ray.shutdown)
            self._pool.shutdown()


def _there(function, *arguments):
    if not ray.is_initialized():
        assert not torch.cuda.is_available()
        _start_ray(gpus=0)
    return function(*arguments)


@pytest.fixture(scope="session")
def elsewhere(ray_with_gpu):
    machine = MachineWithoutGpu()
    yield machine
    machine.stop()


@dataclass
class Trained:
    """A trainer after two iterations, where it saved itself, and its weights then."""

    case: Case
    gpus: float
    trainer: object
    path: str
    weights: dict

    @property
    def algorithm(self):
        return self.trainer.algorithm

    @property
    def is_new(self):
        return self.algorithm.config.enable_rl_module_and_learner

    @property
    def learners_device(self):
        """Where networks have to be that learn."""
        none = not self.gpus or self.case.algorithm in LEARN_IN_RUNNERS
        return "cpu" if none else DEVICE


def make_trainer(case, gpus, **more):
    """A trainer; without a GPU to test with, it asks for none."""
    gpus = gpus if DEVICE == "cuda" else 0
    config = {**case.config, "num_gpus": gpus, **more}
    return compat.Trainer(algorithm=case.algorithm, config=config, legacy_ray=case.ray)


@pytest.fixture(scope="module")
def trained(request, tmp_path_factory, ray_with_gpu):
    case, gpus = request.param
    trainer = make_trainer(case, gpus)
    try:
        for iteration in (1, 2):
            assert trainer.train()["training_iteration"] == iteration
        path = trainer.save(str(tmp_path_factory.mktemp("saved")))
        yield Trained(case, gpus, trainer, path, training_matrix.saved_weights(trainer, path))
    finally:
        trainer.stop()


@pytest.fixture(scope="module")
def continued(trained, elsewhere, tmp_path_factory):
    """What a machine without a GPU made of it."""
    folder = tmp_path_factory.mktemp("continued")
    return elsewhere.call(continue_there, trained.case, trained.path, str(folder))


def continue_there(case, path, folder):
    """The weights that are restored, one iteration later those that are saved, and where."""
    trainer = make_trainer(case, 0)
    try:
        trainer.restore(path)
        restored = copy.deepcopy(trainer.get_weights())  # the old API stack's are views
        assert trainer.train()["training_iteration"] == 3
        saved = trainer.save(folder)
        return restored, saved, training_matrix.saved_weights(trainer, saved)
    finally:
        trainer.stop()


def assert_equal(found, wanted):
    """Whether weights are equal, to the digit."""
    assert found.keys() == wanted.keys()
    for policy, arrays in wanted.items():
        assert found[policy].keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[policy][name], array, err_msg=f"{policy}.{name}")


def devices_of(module):
    """Where the arrays of a module are, or of several by name."""
    if hasattr(module, "parameters"):
        return {array.device.type for array in (*module.parameters(), *module.buffers())}
    return {kind for each in module.values() for kind in devices_of(each.unwrapped())}


class Finder(ray.cloudpickle.Pickler):
    """Notes on which devices tensors are in what it pickles."""

    def __init__(self):
        super().__init__(io.BytesIO())
        self.devices = set()

    def reducer_override(self, part):
        if isinstance(part, torch.Tensor):
            self.devices.add(part.device.type)
            return str, ("a tensor",)
        return super().reducer_override(part)


def devices_in(*values):
    """On which devices there are tensors in some objects."""
    finder = Finder()
    finder.dump(values)
    return finder.devices


@of_each_case
def test_networks_learn_where_the_config_says_and_act_on_cpus(trained):
    algorithm, runner = trained.algorithm, trained.algorithm.env_runner
    if not trained.is_new:
        policies = runner.policy_map.values()
        assert {kind for p in policies for kind in devices_of(p.model)} == {trained.learners_device}
        return
    found = devices_of(local_learner(algorithm).module)
    if trained.case.algorithm in WITHOUT_WEIGHTS:
        assert not found
        return
    assert found == {trained.learners_device}
    if runner is not None and runner.module is not None:
        assert devices_of(runner.module) == {"cpu"}


@of_each_case
def test_samples_and_what_is_replayed_are_in_the_hosts_memory(trained):
    algorithm, runner = trained.algorithm, trained.algorithm.env_runner
    replayed = getattr(algorithm, "local_replay_buffer", None)
    assert devices_in(replayed) <= {"cpu"}
    if runner is not None and getattr(runner, "env", None) is not None:
        assert devices_in(runner.sample()) <= {"cpu"}


@of_each_case
def test_a_checkpoint_is_restored_without_a_gpu_to_the_digit_and_trains_on(trained, continued):
    restored, _, _ = continued
    assert_equal(restored, trained.weights)


@of_each_case
def test_what_was_saved_without_a_gpu_is_restored_with_one(trained, continued):
    _, path, weights = continued
    trainer = make_trainer(trained.case, trained.gpus)
    try:
        trainer.restore(path)
        assert_equal(trainer.get_weights(), weights)
        if trained.is_new:
            devices = devices_of(local_learner(trainer.algorithm).module)
            assert devices <= {trained.learners_device}
        assert trainer.train()["training_iteration"] == 4
    finally:
        trainer.stop()


def convert_there(path, folder):
    """The weights of a checkpoint, and those of the same as msgpack."""
    compat.convert(path, f"{folder}/msgpack", to="msgpack", prove=False)
    return weights_in(path), weights_in(f"{folder}/msgpack")


def weights_in(path):
    return {name: policy.weights for name, policy in read_checkpoint(path).policies.items()}


@of_each_case
def test_a_conversion_without_a_gpu_keeps_every_bit(trained, elsewhere, tmp_path):
    before, after = elsewhere.call(convert_there, trained.path, str(tmp_path))
    assert_equal(after, before)
    if trained.is_new:
        assert_equal(before, {name: before[name] for name in trained.weights})


def act_there(case, path):
    """An action of a policy that is loaded without Ray, or why there is none."""
    policy, seen = matrix_inputs.observed(case.algorithm, case.seen)
    loaded = compat.load_policy(path, "one" if case.several_agents else policy)
    states = {"state": loaded.get_initial_state()} if loaded.is_recurrent else {}
    return loaded.compute_single_action(seen, **states).actions


@of_each_case
def test_its_policy_acts_without_a_gpu(trained, elsewhere):
    case = trained.case
    try:
        action = elsewhere.call(act_there, case, trained.path)
    except CompatError:
        if case.algorithm in ACT_IN_RAY or "custom model" in case.says:
            return
        raise
    space = matrix_inputs.acted(case.algorithm, case.acts, grouped=not case.several_agents)
    assert training_matrix.fits(action, space), action


def load_there(path, case):
    algorithm = compat.load(path, env=case.env, env_config=case.config["env_config"])
    try:
        weights = {"default_policy": algorithm.get_module().get_state()}
        return (
            weights,
            algorithm.config.num_gpus_per_learner,
            algorithm.train()["training_iteration"],
        )
    finally:
        algorithm.stop()


@of_some
def test_loaded_without_a_gpu_it_asks_for_none_and_trains_on(trained, elsewhere):
    weights, gpus, iteration = elsewhere.call(load_there, trained.path, trained.case)
    assert gpus == 0
    assert iteration == 3
    known = trained.weights["default_policy"]
    for name, array in weights["default_policy"].items():
        if name in known:
            np.testing.assert_array_equal(array, known[name])


@pytest.mark.parametrize("algorithm", ["PPO", "DQN", "SAC", "IMPALA", "A3C", "DDPPO", "APEX"])
def test_a_worker_with_a_share_of_a_gpu_acts_there(algorithm):
    share = 0.25 if DEVICE == "cuda" else 0
    case = case_of(algorithm, "worker")
    trainer = make_trainer(
        case, 0 if algorithm in LEARN_IN_RUNNERS else 0.5, num_gpus_per_worker=share
    )
    try:
        trainer.train()
        trainer.train()
        group = trainer.algorithm.env_runner_group
        found = env_runners.foreach_env_runner(group, _devices_of_runner)[1:]
        assert found == [{DEVICE if RUNNERS_HAVE_DEVICES else "cpu"}]
        if algorithm in ("A3C", "DDPPO"):
            learns = env_runners.foreach_env_runner(group, _devices_of_learner)[1:]
            assert learns == [{DEVICE}]
    finally:
        trainer.stop()


def _devices_of_runner(runner):
    return devices_of(runner.module)


def _devices_of_learner(runner):
    return devices_of(policies.local_learner(runner).module)
