"""What small parts of an old Ray compute: ranks, steps, mixers, buffers, schedules."""

import gym
import numpy as np
import torch
from ray.rllib.agents.dqn.r2d2_torch_policy import h_function, h_inverse
from ray.rllib.agents.es import optimizers, utils
from ray.rllib.agents.es.es import SharedNoiseTable, create_shared_noise
from ray.rllib.agents.qmix.mixers import QMixer, VDNMixer
from ray.rllib.agents.qmix.model import RNNModel
from ray.rllib.env.wrappers.exception_wrapper import ResetOnExceptionWrapper
from ray.rllib.evaluation.postprocessing import compute_advantages
from ray.rllib.execution.buffers.minibatch_buffer import MinibatchBuffer
from ray.rllib.execution.segment_tree import MinSegmentTree, SumSegmentTree
from ray.rllib.models.torch.misc import normc_initializer
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils import schedules
from ray.rllib.utils.timer import TimerStat
from ray.rllib.utils.torch_utils import Swish, atanh, convert_to_non_torch_type, minimize_and_clip
from ray.rllib.utils.window_stat import WindowStat

#: What is asked of `compute_advantages`.
ADVANTAGES = {
    "": {},
    "_without_gae": {"use_gae": False},
    "_without_critic": {"use_gae": False, "use_critic": False},
}


def fill(module):
    """Gives a module weights that anybody can make."""
    state = {}
    for name, weight in module.state_dict().items():
        count = weight.numel()
        state[name] = (torch.arange(count).float() / count - 0.4).reshape(weight.shape)
    module.load_state_dict(state)
    return module


class Weights:
    """What an optimizer of ES moves."""

    num_params = 4

    def get_flat_weights(self):
        return np.array([1.0, -2.0, 0.5, 3.0], np.float32)


class Failing(gym.Env):
    """Fails in its second step."""

    observation_space = gym.spaces.Discrete(5)
    action_space = gym.spaces.Discrete(2)
    steps = 0

    def reset(self):
        self.steps = 0
        return 1

    def step(self, action):
        self.steps += 1
        if self.steps == 2:
            raise RuntimeError("it fails")
        return 2, 1.0, False, {}


def of_all(found):
    values = np.array([3.0, -1.0, 2.5, 7.0, 0.0], np.float32)
    found["ranks"] = utils.compute_ranks(values)
    found["centered"] = utils.compute_centered_ranks(values)
    total, count = utils.batched_weighted_sum(values, [np.arange(3) + i for i in range(5)], 2)
    found["weighted_sum"], found["weighted_count"] = total, count
    found["groups"] = [len(group) for group in utils.itergroups(range(7), 3)]
    table = SharedNoiseTable(create_shared_noise._function(1000))
    found["noise"] = table.get(500, 5)
    for name, made in (
        ("sgd", optimizers.SGD(Weights(), 0.1, momentum=0.5)),
        ("adam", optimizers.Adam(Weights(), 0.01)),
    ):
        for step in range(3):
            after, ratio = made.update(np.array([0.3, -1.0, 0.0, 2.0 * step], np.float32))
            found[f"{name}.{step}"] = after
            found[f"{name}.{step}.ratio"] = ratio
    qs, states = torch.arange(12).float().reshape(2, 2, 3) / 5, torch.arange(20).float() / 9
    found["qmixer"] = fill(QMixer(3, (5,), 4))(qs, states.reshape(2, 2, 5)).detach().numpy()
    found["vdn"] = VDNMixer()(qs, None).numpy()
    box = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
    config = {"lstm_cell_size": 4, "n_agents": 2}
    model = fill(RNNModel(box, gym.spaces.Discrete(2), 2, config, "model"))
    seen = torch.arange(6).float().reshape(2, 3) / 3
    out, state = model.forward({"obs_flat": seen}, model.get_initial_state(), None)
    found["rnn"], found["rnn.state"] = out.detach().numpy(), state[0].detach().numpy()
    x = torch.tensor([-3.0, -0.5, 0.0, 0.2, 9.0])
    found["h"], found["h_inverse"] = h_function(x).numpy(), h_inverse(x).numpy()
    found["atanh"] = atanh(torch.tensor([-1.0, -0.5, 0.3, 1.0])).numpy()
    found["swish"] = Swish()(x).detach().numpy()
    struct = convert_to_non_torch_type({"a": torch.tensor(2.5), "b": x, "c": 3})
    found["plain"] = [struct["a"], struct["b"].sum(), struct["c"]]
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.tensor([3.0, 4.0, 12.0])
    minimize_and_clip(torch.optim.SGD([weight], lr=1.0), 2.0)
    found["clipped"] = weight.grad.numpy()
    torch.manual_seed(3)
    initial = torch.zeros(3, 4)
    normc_initializer(0.5)(initial)
    found["normc"] = initial.numpy()
    batch = SampleBatch({"rewards": np.arange(4.0), "vf_preds": np.ones(4, np.float32)})
    for name, told in ADVANTAGES.items():
        made = compute_advantages(batch.copy(), 0.5, gamma=0.9, lambda_=0.8, **told)
        for column in ("advantages", "value_targets"):
            found[column + name] = made[column]
    for name, made in (
        ("constant", schedules.ConstantSchedule(0.3, framework=None)),
        (
            "linear",
            schedules.LinearSchedule(
                schedule_timesteps=100, final_p=0.1, initial_p=1.0, framework=None
            ),
        ),
        (
            "piecewise",
            schedules.PiecewiseSchedule([(0, 1.0), (50, 0.2)], framework=None, outside_value=0.2),
        ),
        ("polynomial", schedules.PolynomialSchedule(100, 0.1, framework=None)),
        (
            "exponential",
            schedules.ExponentialSchedule(100, framework=None, initial_p=1.0, decay_rate=0.1),
        ),
    ):
        found["schedule." + name] = [float(made.value(t)) for t in (0, 10, 50, 99, 200)]
    sums, least = SumSegmentTree(8), MinSegmentTree(8)
    for index, value in enumerate((3.0, 1.0, 4.0, 1.5, 9.0)):
        sums[index] = least[index] = value
    found["tree"] = [sums.sum(), sums.sum(1, 3), least.min(2, 5), sums.find_prefixsum_idx(5.0)]
    window = WindowStat("w", 3)
    for value in (1.0, 5.0, 2.0, 8.0):
        window.push(value)
    stats = window.stats()
    found["window"] = [stats["w_count"], stats["w_mean"], stats["w_std"]]
    timer = TimerStat()
    timer.push(2.0)
    timer.push(4.0)
    timer.push_units_processed(10)
    found["timer"] = [timer.mean, timer.mean_units_processed, timer.mean_throughput]
    import queue

    inputs = queue.Queue()
    for value in range(3):
        inputs.put(value)
    buffer = MinibatchBuffer(inputs, size=1, timeout=1, num_passes=2, init_num_passes=1)
    found["minibatches"] = [list(map(int, buffer.get())) for _ in range(5)]
    env = ResetOnExceptionWrapper(Failing())
    found["wrapper"] = [env.reset(), env.step(0)[0], env.step(0)[0], env.step(1)[0]]


QUESTIONS = (of_all,)
