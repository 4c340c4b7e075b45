"""Helpers of RLlib that own loops import."""

import gym
import numpy as np
from facts import record
from ray.rllib.env.env_context import EnvContext
from ray.rllib.evaluation.postprocessing import Postprocessing, compute_advantages, discount_cumsum
from ray.rllib.models.catalog import MODEL_DEFAULTS, ModelCatalog
from ray.rllib.models.torch.misc import SlimFC, normc_initializer
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils import deep_update, merge_dicts
from ray.rllib.utils.filter import MeanStdFilter
from ray.rllib.utils.framework import try_import_torch
from ray.rllib.utils.numpy import fc, one_hot, relu, sigmoid, softmax
from ray.rllib.utils.schedules import (
    ConstantSchedule,
    ExponentialSchedule,
    LinearSchedule,
    PolynomialSchedule,
)
from ray.rllib.utils.sgd import minibatches, standardized
from ray.rllib.utils.timer import TimerStat
from ray.rllib.utils.torch_utils import explained_variance, sequence_mask
from ray.rllib.utils.window_stat import WindowStat

torch, nn = try_import_torch()
batch = SampleBatch(
    {
        "obs": np.arange(12, dtype=np.float32).reshape(6, 2),
        "rewards": np.ones(6, np.float32),
        "actions": np.arange(6) % 2,
        "dones": np.array([0, 0, 1, 0, 0, 1], bool),
        "eps_id": np.array([1, 1, 1, 2, 2, 2]),
        "vf_preds": np.zeros(6, np.float32),
    }
)
parts = batch.split_by_episode()
done = [compute_advantages(p, 0.5, gamma=0.9, lambda_=0.5, use_gae=True) for p in parts]
whole = SampleBatch.concat_samples(done)
rows = list(batch.rows())
stat = MeanStdFilter((2,))
filtered = [stat(row["obs"]).tolist() for row in rows]
window = WindowStat("w", 3)
for i in range(5):
    window.push(i)
timer = TimerStat()
with timer:
    pass
timer.push_units_processed(4)
context = EnvContext({"a": 1}, worker_index=2, vector_index=1, remote=False, num_workers=3)
context.set_defaults({"b": 2})
more = context.copy_with_overrides(worker_index=5)
dist, size = ModelCatalog.get_action_dist(
    gym.spaces.Box(-1, 1, (2,), np.float32), dict(MODEL_DEFAULTS), framework="torch"
)
layer = SlimFC(3, 2, initializer=normc_initializer(1.0), activation_fn="relu")
record(
    episodes=[p.count for p in parts],
    advantages=whole[Postprocessing.ADVANTAGES],
    targets=whole[Postprocessing.VALUE_TARGETS],
    discounted=discount_cumsum(np.array([1.0, 1.0, 1.0]), 0.5),
    columns=[np.shape(c) for c in batch.columns(["obs", "actions"])],
    slice=batch.slice(1, 3)["obs"],
    size=[batch.count, batch.size_bytes() > 0],
    shuffled=sorted(batch.copy().shuffle()["actions"].tolist()),
    timeslices=[s.count for s in batch.timeslices(3)],
    many=[
        MultiAgentBatch({"p": batch}, 6).agent_steps(),
        SampleBatch.concat_samples([batch, batch]).count,
    ],
    filtered=filtered[-1],
    n=(stat.rs if hasattr(stat, "rs") else stat.running_stats).n,
    window=[window.mean(), window.quantiles() is not None],
    timer=[timer.count, timer.units_processed if hasattr(timer, "units_processed") else None],
    schedules=[
        float(
            LinearSchedule(schedule_timesteps=10, final_p=0.0, initial_p=1.0, framework=None).value(
                5
            )
        ),
        float(ConstantSchedule(0.3, framework=None).value(5)),
        round(
            float(
                ExponentialSchedule(
                    schedule_timesteps=10, framework=None, initial_p=1.0, decay_rate=0.1
                ).value(5)
            ),
            4,
        ),
        float(
            PolynomialSchedule(
                schedule_timesteps=10, final_p=0.0, framework=None, initial_p=1.0, power=2.0
            ).value(5)
        ),
    ],
    numbers=[
        one_hot(np.array([1, 0]), 3),
        softmax(np.zeros((1, 2))),
        relu(np.array([-1.0, 2.0])),
        sigmoid(np.zeros(1)),
    ],
    fc=fc(np.ones((1, 2)), np.ones((2, 3)), np.zeros(3), framework=None),
    batches=len(list(minibatches(batch, 2))),
    standard=standardized(np.array([1.0, 2.0, 3.0])),
    variance=float(
        explained_variance(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 2.0]))
    ),
    mask=sequence_mask(torch.tensor([1, 3]), 3).int().numpy(),
    merged=merge_dicts({"a": {"b": 1}}, {"a": {"c": 2}}),
    updated=deep_update(
        {"a": {"b": 1}, "t": {"type": "x", "k": 1}}, {"t": {"type": "y"}}, True, [], ["t"]
    ),
    context=[
        dict(context),
        context.worker_index,
        more.worker_index,
        more.vector_index,
        more.num_workers,
    ],
    dist=[getattr(dist, "func", dist).__name__, size],
    layer=np.shape(layer(torch.zeros((4, 3))).detach().numpy()),
)
