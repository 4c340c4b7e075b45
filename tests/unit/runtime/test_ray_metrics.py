"""What each release's metrics and optimizers do to values, with ours between; nothing starts."""

import copy
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from ray.rllib.utils import torch_utils
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger
from ray.rllib.utils.torch_utils import convert_to_torch_tensor

from rllib_compat.adapters import EpisodeRecord
from rllib_compat.ray_versions import checkpoints, learners, releases
from rllib_compat.ray_versions import metrics as ray_metrics

pytestmark = pytest.mark.matrix
STEPS = "num_env_steps_sampled_lifetime"


class Runner:
    """An env runner as far as its metrics go."""

    def __init__(self):
        self.metrics = MetricsLogger()

    def sample(self, steps):
        try:
            self.metrics.log_value(STEPS, steps, reduce="lifetime_sum")
        except ValueError:
            self.metrics.log_value(STEPS, steps, reduce="sum")
        # As it comes from another process.
        return copy.deepcopy(ray_metrics.count_once(_reduced(self.metrics)))


def _reduced(metrics):
    try:
        return metrics.reduce(compile=False)
    except TypeError:
        return metrics.reduce()


def _send(algorithm, results):
    metrics = algorithm.metrics
    send = getattr(metrics, "aggregate", None) or metrics.merge_and_log_n_dicts
    send(results, key="env_runners")
    return metrics.peek(("env_runners", STEPS))


def test_steps_of_several_fragments_are_counted_once():
    algorithm, runner = SimpleNamespace(metrics=MetricsLogger(), learner_group=object()), Runner()
    ray_metrics.start_counting(algorithm)
    assert _send(algorithm, [runner.sample(50) for _ in range(8)]) == 400
    assert _send(algorithm, [runner.sample(50) for _ in range(8)]) == 800


def test_steps_that_are_counted_twice_are_counted_once():
    algorithm, runner = SimpleNamespace(metrics=MetricsLogger(), learner_group=object()), Runner()
    ray_metrics.start_counting(algorithm)
    again = [ray_metrics.count_once(runner.sample(50)) for _ in range(8)]
    assert _send(algorithm, again) == 400


def test_counters_of_a_checkpoint_are_there_after_the_first_sample():
    algorithm, runner = SimpleNamespace(metrics=MetricsLogger(), _iteration=0), Runner()
    ray_metrics.set_lifetime_counters(algorithm, iteration=3, env_steps=1000, episodes=7)
    assert _send(algorithm, [runner.sample(50)]) == 1050


def test_a_runner_that_knows_no_steps_yet_can_send_its_first_ones():
    told, runner = {}, Runner()
    env_runner = SimpleNamespace(set_state=told.update)
    algorithm = SimpleNamespace(metrics=MetricsLogger(), env_runner=env_runner)
    ray_metrics.set_steps_of_env_runner(algorithm, 0, 0)
    assert told == {STEPS: 0}
    assert _send(algorithm, [runner.sample(50)]) == 50


def test_all_episodes_of_an_iteration_reach_its_result():
    runner, algorithm = MetricsLogger(), MetricsLogger()
    records = [EpisodeRecord(5, 5.0, {}, {}, {}, {}), EpisodeRecord(6, 6.0, {}, {}, {}, {})]
    for record in records:
        ray_metrics.log_item(runner, "records", record)
    send = getattr(algorithm, "aggregate", None) or algorithm.merge_and_log_n_dicts
    send([_reduced(runner)], key=("evaluation", "env_runners"))
    result = {"env_runners": algorithm.peek(("evaluation", "env_runners"))}
    ray_metrics.take_evaluation_items(algorithm, result, "records")
    assert ray_metrics.items(result["env_runners"]["records"], EpisodeRecord) == records
    if releases.at_least("2.47") and not releases.at_least("2.53"):
        assert "records" not in algorithm.stats["evaluation"]["env_runners"]


@pytest.mark.parametrize("found", [float("nan"), (), []])
def test_no_episodes_are_none(found):
    assert ray_metrics.items(found, EpisodeRecord) == []


def test_moments_survive_what_a_restore_does_to_their_parameters_numbers():
    def adam():
        parameter = torch.nn.Parameter(torch.ones(2))
        return torch.optim.Adam([parameter], lr=0.1), parameter

    optimizer, parameter = adam()
    parameter.grad = torch.ones(2)
    optimizer.step()
    learner = SimpleNamespace(_named_optimizers={"default": optimizer})
    group = SimpleNamespace(foreach_learner=lambda function: function(learner))
    checkpoints.keep_optimizers_through_restores(SimpleNamespace(learner_group=group))
    checkpoints.keep_optimizers_through_restores(SimpleNamespace(learner_group=group))
    stored = optimizer.state_dict()
    restored, parameter = adam()
    if releases.at_least("2.56") or not releases.at_least("2.41"):
        restored.load_state_dict(stored)
    else:
        restored.load_state_dict(convert_to_torch_tensor(stored))
    (slots,) = [restored.state[parameter]]
    assert float(slots["step"]) == 1
    np.testing.assert_allclose(slots["exp_avg"].numpy(), [0.1, 0.1])


def test_values_that_are_added_directly_reach_the_result_as_rays_do():
    mine, rays = MetricsLogger(), MetricsLogger()
    ray_metrics.log_directly(mine)
    results = []
    for logger in (mine, rays):
        for _ in range(2):  # names that a result has had, too
            for step in range(3):
                logger.log_value(("policy", "steps"), 4, reduce="sum")
                logger.log_value("time", 0.1 * step)
                logger.log_dict(
                    {"loss": torch.tensor(step / 3), "mean": 0.5}, key="policy", window=1
                )
                logger.log_dict({"deep": {"er": step}}, key=("policy", "nested"), window=2)
            reduced = _reduced(logger)
        results.append(
            {name: float(found.peek()) for name, found in _leaves(reduced) if found is not None}
        )
    assert results[0] == results[1]
    assert results[0].keys() >= {("policy", "loss"), ("policy", "steps"), ("time",)}


def _leaves(found, above=()):
    for name, inner in found.items():
        if isinstance(inner, dict):
            yield from _leaves(inner, (*above, name))
        else:
            yield (*above, name), inner


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, float("inf")])
def test_gradients_are_clipped_to_the_numbers_that_ray_clips_them_to(scale):
    if not releases.at_least("2.60"):
        pytest.skip("Ray clips them itself")
    shapes = ((64, 4), (64,), (2, 64), ())
    given = {shape: torch.randn(shape) * scale for shape in shapes}
    mine, rays = ({k: v.clone() for k, v in given.items()} for _ in range(2))
    limit = {"grad_clip": 40.0, "grad_clip_by": "global_norm"}
    norm, finite = learners.clip_gradients(mine, **limit)
    assert torch.equal(norm, torch_utils.clip_gradients(rays, **limit))
    assert finite == math.isfinite(scale)
    assert all(torch.equal(mine[k].nan_to_num(7), rays[k].nan_to_num(7)) for k in shapes)


@pytest.mark.parametrize("turned", ["parameter", "state", None])
def test_adam_makes_torchs_steps_however_its_numbers_lie_in_memory(turned):
    weights, gradients = torch.randn(3, 5), [torch.randn(3, 5) for _ in range(4)]
    laid = weights.T.contiguous().T if turned == "parameter" else weights.clone()
    mine, torchs = torch.nn.Parameter(laid), torch.nn.Parameter(weights.clone())
    adams = torch.optim.Adam([mine], lr=0.1), torch.optim.Adam([torchs], lr=0.1)
    for gradient in gradients:
        mine.grad, torchs.grad = gradient.clone(), gradient.clone()
        learners.make_step(adams[0])
        adams[1].step()
        state = adams[0].state[mine]
        if turned == "state":
            state["exp_avg"] = state["exp_avg"].T.contiguous().T
    torch.testing.assert_close(mine, torchs, rtol=1e-5, atol=1e-6)
    assert adams[0].state_dict()["param_groups"] == adams[1].state_dict()["param_groups"]


def test_adam_makes_torchs_steps_with_settings_that_a_restore_made_tensors_of():
    """As Ray 2.44 – 2.52 do."""
    weights, gradients = torch.randn(3, 5), [torch.randn(3, 5) for _ in range(3)]
    mine, torchs = (torch.nn.Parameter(weights.clone()) for _ in range(2))
    adams = torch.optim.Adam([mine], lr=0.1), torch.optim.Adam([torchs], lr=0.1)
    for gradient in gradients:
        mine.grad, torchs.grad = gradient.clone(), gradient.clone()
        learners.make_step(adams[0])
        adams[1].step()
        for adam in adams:
            (group,) = adam.param_groups
            group["betas"] = tuple(map(torch.as_tensor, group["betas"]))
            group |= {name: torch.as_tensor(group[name]) for name in ("eps", "maximize")}
    torch.testing.assert_close(mine, torchs, rtol=1e-5, atol=1e-6)
