"""Small things that scripts import from RLlib's utilities."""

import numpy as np
from facts import record
from ray.rllib.evaluation.postprocessing import compute_advantages
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils import merge_dicts
from ray.rllib.utils.annotations import override
from ray.rllib.utils.framework import try_import_torch
from ray.rllib.utils.numpy import fc, one_hot, sigmoid, softmax
from ray.rllib.utils.schedules import ConstantSchedule, LinearSchedule, PiecewiseSchedule

torch, nn = try_import_torch()
batch = SampleBatch(
    {
        "obs": np.arange(6, dtype=np.float32).reshape(3, 2),
        "rewards": np.array([1.0, 1.0, 1.0], np.float32),
        "vf_preds": np.array([0.5, 0.25, 0.0], np.float32),
    }
)
done = compute_advantages(batch, last_r=2.0, gamma=0.9, lambda_=0.8, use_gae=True)
piecewise = PiecewiseSchedule([(0, 1.0), (10, 0.0)], framework=None, outside_value=0.0)
whole = SampleBatch.concat_samples([done, done])


class Base:
    def go(self):
        return 1


class Derived(Base):
    @override(Base)
    def go(self):
        return 2


record(
    advantages=done["advantages"],
    targets=done["value_targets"],
    count=whole.count,
    rows=[row["rewards"] for row in whole.rows()][:2],
    shuffled=sorted(whole["rewards"]) == sorted(whole.copy()["rewards"]),
    sliced=whole.slice(1, 3).count,
    merged=merge_dicts({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}),
    one_hot=one_hot(np.array([1, 0]), depth=3),
    softmax=softmax(np.array([[1.0, 1.0]])),
    sigmoid=float(sigmoid(np.array(0.0))),
    fc=fc(np.ones((1, 2)), np.ones((2, 2)), np.zeros(2)),
    schedules=[
        float(ConstantSchedule(0.3, framework=None).value(5)),
        float(
            LinearSchedule(schedule_timesteps=10, final_p=0.0, framework=None, initial_p=1.0).value(
                5
            )
        ),
        float(piecewise.value(5)),
        float(piecewise.value(50)),
    ],
    own=Derived().go(),
    torch=hasattr(nn, "Module"),
)
