"""An observation filter gives what it gave in Ray 1.13.0, fragment by fragment.

`tests/legacy/losses/record_filters.py` made the numbers; those of integers are of three Rays, by
`record_integer_filters.py` beside it.
"""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
from ray.rllib.connectors.env_to_module import MeanStdFilter

from rllib_compat import translate
from rllib_compat.networks.observation_filter import filter_settings
from rllib_compat.networks.ops import in_numpy, in_torch
from rllib_compat.neutral import ObservationFilter, RunningStat
from rllib_compat.runtime import add_preprocessors, use_compat_env_runners
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.recordings import Recording, close
from tests.unit.algorithms.test_losses import RECORDS

pytestmark = OTHERS_WARNINGS

RECORDED = Recording(RECORDS / "filters.npz")


class Walk(gymnasium.Env):
    """Observations depend on the step and on where episodes begin; they have 20 steps."""

    observation_space = gymnasium.spaces.Box(-100.0, 100.0, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, told):
        self.first = told["first"]

    def seen(self):
        return np.array([self.at + self.first, self.at % 3, 5.0], np.float32)

    def reset(self, **_):
        self.at = 0
        return self.seen(), {}

    def step(self, action):
        self.at += 1
        return self.seen(), 1.0, self.at >= 20, False, {}


def runner_of(first):
    old = {"num_workers": 0, "observation_filter": "MeanStdFilter"}
    config = translate(old, algorithm="PPO", legacy_ray="1.13.0").algorithm_config
    config.environment(Walk, env_config={"first": first})
    use_compat_env_runners(config)
    return config.env_runner_cls(config=config, worker_index=0)


def filter_of(runner):
    (piece,) = (c for c in runner._env_to_module.connectors if isinstance(c, MeanStdFilter))
    return piece


def same(piece, recorded):
    (told,) = piece._filters.values()
    found = told.running_stats
    close([found.num_pushes], [recorded["count"]], 0)
    close(found.mean, recorded["mean"], 1e-6)
    close(found.std, recorded["std"], 1e-6)


def test_what_policies_see_and_the_statistics_are_those_of_ray_1_13():
    runner = runner_of(0.0)
    for number in range(3):
        episodes = runner.sample(num_timesteps=30)
        seen = [episode.get_observations(slice(0, len(episode))) for episode in episodes]
        close(np.concatenate(seen), RECORDED.found[f"{number}.obs"], 1e-5)
        if number != 1:  # an episode has ended, whose successor has not begun here
            same(filter_of(runner), RECORDED.below(str(number)))
    runner.stop()


def test_workers_add_up_what_they_have_seen_as_those_of_ray_1_13():
    """After each iteration all have the statistics of all, and what each saw counts once."""
    local, workers = filter_of(runner_of(0.0)), [runner_of(0.0), runner_of(7.0)]
    for number in range(3):
        for worker in workers:
            worker.sample(num_timesteps=30)
        merged = local.merge_states([filter_of(worker).get_state() for worker in workers])
        for worker in workers:
            filter_of(worker).set_state(merged)
        if number != 1:
            for worker in workers:
                same(filter_of(worker), RECORDED.below(f"merged.{number}"))


def test_states_that_were_dropped_or_come_late_count_once():
    """IMPALA and APPO take a state with each sample, and merge those that an update follows."""
    local, worker = filter_of(runner_of(0.0)), runner_of(0.0)
    states = []
    for _ in range(3):
        worker.sample(num_timesteps=30)
        states.append(filter_of(worker).get_state())
    for state in (states[0], states[2], states[1], states[2]):
        filter_of(worker).set_state(local.merge_states([state]))
    same(local, RECORDED.below("2"))
    same(filter_of(worker), RECORDED.below("2"))


class Waves(gymnasium.Env):
    """What `record_integer_filters.py` played."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, told):
        self.observation_space = told["space"]

    def seen(self):
        space = self.observation_space
        most = 2 if isinstance(space, gymnasium.spaces.MultiBinary) else 101
        numbers = (np.arange(np.prod(space.shape)) + 1) * (self.at * self.at + 3) % most
        return numbers.reshape(space.shape).astype(space.dtype)

    def reset(self, **_):
        self.at = 0
        return self.seen(), {}

    def step(self, action):
        self.at += 1
        return self.seen(), 1.0, self.at >= 10, False, {}


INTEGERS = {
    "int64": gymnasium.spaces.Box(-100, 100, (3,), np.int64),
    "uint8": gymnasium.spaces.Box(0, 255, (3,), np.uint8),
    "image": gymnasium.spaces.Box(0, 255, (6, 6, 3), np.uint8),
    "bits": gymnasium.spaces.MultiBinary(3),
}


def test_a_filter_behind_another_connector_is_merged():
    """Ray's pipelines give its state to the first connector."""
    old = {"num_workers": 0, "observation_filter": "MeanStdFilter"}
    config = translate(old, algorithm="PPO", legacy_ray="1.13.0").algorithm_config
    config.environment(Waves, env_config={"space": INTEGERS["bits"]})
    add_preprocessors(config)
    use_compat_env_runners(config)
    local, worker = (config.env_runner_cls(config=config, worker_index=index) for index in (0, 1))
    worker.sample(num_timesteps=25)
    pipelines = [runner._env_to_module for runner in (local, worker)]
    pipelines[0].merge_states([pipelines[1].get_state()])
    counts = [
        next(iter(filter_of(runner)._filters.values())).running_stats.n
        for runner in (local, worker)
    ]
    assert counts[0] == counts[1] > 25


@pytest.mark.parametrize("ray", ["0.8.5", "1.0.1", "1.13.0"])
@pytest.mark.parametrize("case", INTEGERS)
def test_what_a_filter_makes_of_integers_are_integers_since_ray_1_10(ray, case):
    recorded = Recording(RECORDS.parent / ray / "integer_filters.npz").found[case]
    assert (recorded.dtype.kind == "f") == (ray != "1.13.0")
    old = {"num_workers": 0, "observation_filter": "MeanStdFilter"}
    old["model"] = {"conv_filters": [[4, [6, 6], 1]]}
    translation = translate(old, algorithm="PPO", legacy_ray=ray)
    config = translation.algorithm_config.environment(Waves, env_config={"space": INTEGERS[case]})
    cuts = translation.legacy_training.filter_keeps_integers
    add_preprocessors(config, filter_keeps_integers=cuts)
    use_compat_env_runners(config)
    runner = config.env_runner_cls(config=config, worker_index=0)
    episodes = runner.sample(num_timesteps=len(recorded))
    seen = [episode.get_observations(slice(0, len(episode))) for episode in episodes]
    runner.stop()
    close(np.concatenate(seen).reshape(recorded.shape), recorded, 1e-5)


@pytest.mark.parametrize("ray", ["0.8.5", "1.0.1", "1.13.0"])
@pytest.mark.parametrize("case", INTEGERS)
def test_a_filter_that_is_a_part_of_a_network_cuts_integers_too(ray, case):
    told = Recording(RECORDS.parent / ray / "integer_filters.npz")
    recorded, count = told.below(case), int(told.found[f"{case}.count"])
    stat = RunningStat(count, recorded["mean"], recorded["std"] ** 2 * (count - 1))
    kind = str(INTEGERS[case].dtype) if ray == "1.13.0" else None
    late = {"epsilon": 1e-6, "integers": kind} if kind else {}
    made = ObservationFilter("MeanStdFilter", stats=(stat,), **late)
    seen = recorded["observed"].astype(np.float64)
    close(made(seen), recorded["filtered"], 1e-5)
    settings = filter_settings(made)
    own = {"mean": stat.mean, "std": stat.std}
    close(in_numpy.OPS["normalize"](own, settings, seen), recorded["filtered"], 1e-5)
    tensors = {part: torch.from_numpy(np.asarray(array)) for part, array in own.items()}
    ours = in_torch.OPS["normalize"](tensors, settings, torch.from_numpy(seen))
    close(ours.numpy(), recorded["filtered"], 1e-5)
