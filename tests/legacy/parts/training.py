"""What parts of trainers and policies of Ray 1.13.0 do: losses, gradients, workers.

There tensors are TensorFlow's, and torch's in what old imports give today.
"""

import sys
import types
from unittest import mock

import gym
import numpy as np
import ray
import torch
from ray.rllib.agents import ppo
from ray.rllib.agents.a3c import a3c_tf_policy
from ray.rllib.agents.alpha_star.league_builder import NoLeagueBuilder
from ray.rllib.agents.ars import ars
from ray.rllib.agents.dqn.apex import UpdateWorkerWeights
from ray.rllib.agents.es import es
from ray.rllib.agents.impala import vtrace_tf_policy
from ray.rllib.agents.impala.impala import BroadcastUpdateLearnerWeights
from ray.rllib.agents.ppo import ppo_tf_policy
from ray.rllib.contrib.alpha_zero.environments.cartpole import CartPole
from ray.rllib.contrib.maddpg.maddpg_policy import MADDPGPostprocessing
from ray.rllib.models.torch.modules.convtranspose2d_stack import ConvTranspose2DStack
from ray.rllib.offline.dataset_reader import get_resource_bundles
from ray.rllib.policy.sample_batch import SampleBatch
from ray.util.iter import LocalIterator
from ray.util.iter_metrics import MetricsContext

IN_OLD_RAY = ray.__version__ == "1.13.0"
if IN_OLD_RAY:
    from ray.rllib.models.tf.tf_action_dist import Categorical
    from ray.rllib.utils.framework import try_import_tf

    tf1, tf, _ = try_import_tf()
    tf1.enable_eager_execution()
else:
    from ray.rllib.models.torch.torch_action_dist import TorchCategorical as Categorical


def tensor(values):
    values = np.asarray(values, bool if np.asarray(values).dtype == bool else np.float32)
    return tf.constant(values) if IN_OLD_RAY else torch.tensor(values)


def plain(values):
    return np.asarray(values if IN_OLD_RAY else values.detach())


def of_losses(found):
    inputs = np.arange(12).reshape(4, 3) / 7
    shared = tensor([1.0, -0.5, 0.2, 3.0]), tensor([1, 2, 0, 1.5]), tensor([0.5, 2.5, 0, 1])
    mask = tensor(np.array([True, True, False, True]))
    for critic in (True, False):
        actions = tensor([0, 2, 1, 1])
        actions = tf.cast(actions, tf.int64) if IN_OLD_RAY else actions.long()
        dist = Categorical(tensor(inputs), None)
        loss = a3c_tf_policy.A3CLoss(dist, actions, *shared, mask, 0.7, 0.02, critic)
        parts = loss.pi_loss, loss.vf_loss, loss.entropy, loss.total_loss
        found[f"a3c_loss.{critic}"] = [float(part) for part in parts]


class Optimizer:
    """What TensorFlow's policies gave for one; ours takes none."""

    def __init__(self, tape):
        self.tape = tape

    def compute_gradients(self, loss, weights):
        return list(zip(self.tape.gradient(loss, weights), weights))  # noqa: B905 - Python 3.8


def of_gradients(found):
    start = [np.arange(3) - 1.5, np.full((2, 2), 0.7)]
    for name, clip in (
        ("a3c", a3c_tf_policy.clip_gradients),
        ("vtrace", vtrace_tf_policy.clip_gradients),
        ("ppo", ppo_tf_policy.compute_and_clip_gradients),
    ):
        for most in (1.0, 100.0, None) if name == "ppo" else (1.0, 100.0):
            config = {"grad_clip": most, "_tf_policy_handles_more_than_one_loss": False}
            if IN_OLD_RAY:
                weights = [tf.Variable(part, dtype=tf.float32) for part in start]
                with tf.GradientTape(persistent=True) as tape:
                    loss = sum(tf.reduce_sum(part**3) for part in weights)
                optimizer = Optimizer(tape)
            else:
                weights = [torch.nn.Parameter(tensor(part)) for part in start]
                loss, optimizer = sum((part**3).sum() for part in weights), None
            given = weights if name == "ppo" else lambda weights=weights: weights
            model = types.SimpleNamespace(trainable_variables=given)
            pairs = clip(types.SimpleNamespace(config=config, model=model), optimizer, loss)
            found[f"{name}.clipped.{most}"] = np.concatenate([plain(g).ravel() for g, _ in pairs])
    gradients = [tensor(part) for part in start]
    policy = types.SimpleNamespace(config={})
    told = vtrace_tf_policy.grad_stats(policy, {}, gradients)
    found["vtrace.grad_stats"] = [float(told["grad_gnorm"])]
    values = tensor([0.1, 0.5, 2.0])
    policy = types.SimpleNamespace(model=types.SimpleNamespace(value_function=lambda: values))
    batch = {"value_targets": tensor([0.0, 1.0, 2.5])}
    told = a3c_tf_policy.grad_stats(policy, batch, gradients)
    found["a3c.grad_stats"] = [float(told[name]) for name in ("grad_gnorm", "vf_explained_var")]
    config = {"model": {"vf_share_layers": False}}
    ppo_tf_policy.setup_config(None, None, None, config)
    found["setup_config"] = [config["model"]["vf_share_layers"]]


class Worker:
    """Notes which weights it is sent, and of which step."""

    def __init__(self):
        self.sent = []
        self.set_weights = types.SimpleNamespace(remote=self._set)

    def _set(self, weights, known):
        self.sent.append((weights, known["timestep"]))


class Local:
    made = 0

    def get_weights(self):
        self.made += 1
        return self.made

    def set_global_vars(self, known):
        self.known = known["timestep"]


def of_weights(found):
    metrics = MetricsContext()
    metrics.counters["num_steps_sampled"] = 70
    with mock.patch.object(LocalIterator, "get_metrics", staticmethod(lambda: metrics)):
        for name, make in (
            ("apex", lambda *given: UpdateWorkerWeights(*given, 30)),
            ("impala", lambda *given: BroadcastUpdateLearnerWeights(*given, 2)),
        ):
            local, thread = Local(), types.SimpleNamespace(weights_updated=True)
            workers = types.SimpleNamespace(local_worker=lambda local=local: local)
            send, actors = make(thread, workers), [Worker(), Worker()]
            # Without a running Ray; where imports are old ones, another module is imported here.
            puts = mock.patch.object(sys.modules["ray"], "put", lambda weights: -weights)
            for step, (index, count) in enumerate([(0, 20), (0, 20), (1, 40), (1, 10), (0, 40)]):
                with puts:
                    send((actors[index], types.SimpleNamespace(count=count)))
                thread.weights_updated = thread.weights_updated or step == 2
            found[name] = np.array([pair for actor in actors for pair in actor.sent]).ravel()
            found[f"{name}.local"] = [local.made, local.known, thread.weights_updated]
    names = "num_weight_syncs", "num_weight_broadcasts"
    found["syncs"] = [metrics.counters[name] for name in names]


def of_batches(found):
    class Policy(MADDPGPostprocessing):
        config = {"n_step": 3, "gamma": 0.9}  # noqa: RUF012

        def get_done_from_info(self, infos):
            return np.array([info.get("done", False) for info in infos])

    count, ends = 5, "dones" if IN_OLD_RAY else "terminateds"
    batch = SampleBatch(
        obs=np.arange(count, dtype=np.float32),
        new_obs=np.arange(count, dtype=np.float32) + 1,
        actions=np.zeros(count),
        rewards=np.arange(count, dtype=np.float32),
        **{ends: np.zeros(count, bool)},
        infos=np.array([{}] * (count - 1) + [{"done": True}]),
    )
    made = Policy().postprocess_trajectory(batch)
    for name in ("rewards", "new_obs"):
        found[f"maddpg.{name}"] = made[name]
    found["maddpg.dones"] = made[ends]
    configs = {}, {"num_workers": 3}, {"input_config": {"parallelism": 5}, "num_workers": 2}
    found["bundles"] = [get_resource_bundles(config)[0]["CPU"] for config in configs]
    builder = NoLeagueBuilder(None, {"a": 1})
    found["league"] = [builder.config["a"], builder.build_league({}) is None]


def of_images(found):
    told = {"filters": ((4, 5, 2), (2, 6, 2)), "output_shape": (1, 14, 14)}
    stack = ConvTranspose2DStack(input_size=3, **told)
    for number, weight in enumerate(stack.parameters()):
        shape = weight.shape
        weight.data = (torch.arange(weight.numel()).float() / weight.numel() - 0.4).reshape(shape)
        weight.data += number / 50
    made = stack(torch.arange(6).float().reshape(2, 1, 3) / 5)
    found["images"] = made.mean.detach().numpy().ravel()[::7]
    found["images.shape"] = [*made.batch_shape, *made.event_shape]


class Paying(gym.Env):
    """Pays what is done, for three steps."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Box(-5.0, 5.0, (1,), np.float32)

    def __init__(self, config=None):
        self.steps = 0

    def reset(self):
        self.steps = 0
        return np.array([0.5, -0.5], np.float32)

    def step(self, action):
        self.steps += 1
        seen = np.array([0.1 * self.steps, 0.2], np.float32)
        return seen, float(np.ravel(action)[0]), self.steps == 3, {}


def of_workers(found):
    noise = (np.arange(500) % 7 - 3).astype(np.float32) / 5
    model = {**ppo.DEFAULT_CONFIG["model"], "fcnet_hiddens": [4], "vf_share_layers": False}
    config = {"env_config": {}, "model": model, "framework": "torch", "eval_prob": 0.0}
    config.update(observation_filter="NoFilter", noise_stdev=0.1, action_noise_std=0.0, offset=0)
    config["num_gpus"] = 0
    config = {**ppo.DEFAULT_CONFIG, **config}
    for name, kind, given in (("es", es.Worker, [{}]), ("ars", ars.Worker, [])):
        kind = kind.__ray_metadata__.modified_class
        worker = kind(dict(config), *given, lambda _: Paying(), noise, 0, 0.0)
        size = worker.policy.num_params
        weights = (np.arange(size) % 5 - 2).astype(np.float32) / 10
        np.random.seed(3)
        told = worker.do_rollouts(weights, timestep_limit=10)
        found[f"{name}.size"] = [size, len(told.noise_indices), *told.noisy_lengths[0]]
        found[f"{name}.indices"] = told.noise_indices
        found[f"{name}.returns"] = np.array(told.noisy_returns).ravel()
        found[f"{name}.signs"] = np.array(told.sign_noisy_returns).ravel()
        found[f"{name}.evaluated"] = [len(told.eval_returns), len(worker.get_filters())]


def of_cartpole(found):
    env = CartPole()
    first = env.reset()
    told, paid, ended = [sorted(first), len(first["obs"])], [], False
    while not ended:
        _, reward, ended, _ = env.step(0)
        paid.append(reward)
    found["cartpole"] = [told[0] == ["action_mask", "obs"], told[1], sum(paid[:-1])]
    found["cartpole.last"] = [paid[-1] == len(paid)]
    state = env.get_state()
    found["cartpole.state"] = [state[1] == paid[-1], len(env.set_state(state)["obs"])]


QUESTIONS = (
    *(of_losses, of_gradients, of_weights, of_batches, of_images, of_workers, of_cartpole),
)
