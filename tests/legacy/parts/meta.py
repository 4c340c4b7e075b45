"""What losses, models and small parts of MAML and MBMPO of Ray 1.13.0 compute."""

import gym
import numpy as np
import torch
from ray.rllib.agents.maml import maml_torch_policy as parts
from ray.rllib.agents.maml.maml import inner_adaptation, set_worker_tasks
from ray.rllib.agents.mbmpo import model_ensemble as ensemble
from ray.rllib.agents.mbmpo import utils
from ray.rllib.models.torch.torch_action_dist import TorchCategorical
from ray.rllib.policy.sample_batch import SampleBatch


class Policy(parts.KLCoeffMixin):
    """What the parts use of a policy."""

    def __init__(self, config):
        self.config, self.cur_lr, self.model = config, 0.1, torch.nn.Linear(2, 1)
        parts.setup_mixins(self, None, None, config)


def of_losses(found):
    numbers = torch.sin(torch.arange(24).float()).reshape(2, 4, 3)
    seen = torch.cos(torch.arange(16).float()).reshape(4, 4)
    told = (torch.tensor([0, 2, 1, 1]), numbers[0], numbers[1], *seen)
    for name, clip in (("plain", False), ("clipped", True)):
        made = parts.PPOLoss(TorchCategorical, *told, 0.3, 0.01, 0.2, 0.5, 0.7, clip)
        found[f"loss.{name}"] = torch.stack(made)
        more = {"cur_kl_coeff": 0.3, "entropy_coeff": 0.01, "clip_param": 0.2}
        more.update(vf_clip_param=0.5, vf_loss_coeff=0.7, clip_loss=clip)
        found[f"worker.{name}"] = parts.WorkerLoss(None, TorchCategorical, *told, **more).loss
    config = {"kl_coeff": 0.2, "inner_adaptation_steps": 2, "num_workers": 2, "kl_target": 0.01}
    config.update(worker_index=1, lr=0.1, inner_lr=0.3, use_gae=True, vf_share_layers=True)
    policy = Policy(config)
    found["kls"] = policy.update_kls([0.001, 0.01, 0.5, 0.02])
    for index in (0, 1):
        policy.config = dict(config, worker_index=index)
        optimizer = parts.maml_optimizer_fn(policy, policy.config)
        found[f"optimizer.{index}"] = np.array(type(optimizer).__name__)
        found[f"optimizer.{index}.lr"] = optimizer.param_groups[0]["lr"]
        names = ("loss", "mean_policy_loss", "mean_vf_loss", "mean_kl_loss", "mean_inner_kl")
        values = {name: float(place) for place, name in enumerate((*names, "mean_entropy"))}
        policy.loss_obj = type("Loss", (), values)
        stats = sorted(parts.maml_stats(policy, None).items())
        found[f"stats.{index}"] = np.array([f"{name} {value}" for name, value in stats])


def of_workers(found):
    calls = []

    class Env:
        def sample_tasks(self, count):
            return [f"task {index}" for index in range(count)]

        def set_task(self, task):
            calls.append(task)

    class Method:
        def __init__(self, function):
            self.remote = function

    class Remote:
        def __init__(self, name):
            self.foreach_env = Method(lambda function: function(Env()))
            self.learn_on_batch = Method(lambda batch: calls.append(f"{name} {batch}"))

    class Workers:
        workers = Remote("a"), Remote("b")

        def remote_workers(self):
            return self.workers

        def local_worker(self):
            return type("Local", (), {"foreach_env": lambda self, call: [call(Env())]})()

    set_worker_tasks(Workers(), False)
    set_worker_tasks(Workers(), True)
    inner_adaptation(Workers(), ["first", "second"])
    found["calls"] = np.array(calls)


def of_models(found):
    rows = np.sin(np.arange(30.0)).reshape(6, 5)
    batch = SampleBatch({"obs": rows[:, :2], "new_obs": rows[:, 2:4], "actions": rows[:, 4:]})
    batch["rewards"] = np.ones(6)
    found["columns"] = np.array(sorted(ensemble.process_samples(batch)))
    norms = ensemble.mean_std_stats(batch)
    for name, (mean, std) in sorted(norms.items()):
        found[f"norms.{name}"] = np.stack([mean, std])
    found["normed"] = ensemble.normalize(rows[:, :2], norms["obs"])
    found["undone"] = ensemble.denormalize(found["normed"], norms["obs"])
    for name, told in (("plain", None), ("normed", norms)):
        data = ensemble.TDDataset(batch, told)
        found[f"data.{name}"] = np.concatenate([*data[3], [len(data)]])
    for name, more in (
        ("plain", {}),
        ("more", {"weight_normalization": True, "output_nonlinearity": torch.nn.Tanh}),
        ("less", {"use_bias": False, "hidden_nonlinearity": torch.nn.ELU}),
    ):
        model = ensemble.TDModel(3, 2, hidden_layers=(4, 3), **more)
        state = model.state_dict()
        for index, key in enumerate(sorted(state)):
            values = torch.sin(torch.arange(state[key].numel()).float() + index)
            state[key] = values.reshape(state[key].shape) + 0.1
        model.load_state_dict(state)
        found[f"model.{name}"] = model(torch.arange(6).float().reshape(2, 3))
        found[f"model.{name}.names"] = np.array(sorted(state))


def of_utilities(found):
    paths = [
        {"observations": np.cos(np.arange(2.0 * n)).reshape(n, 2), "rewards": np.arange(1.0, n + 1)}
        for n in (5, 3)
    ]
    made = utils.calculate_gae_advantages(paths, 0.9, 0.8)
    for index, path in enumerate(made):
        found[f"path.{index}"] = np.stack([path["returns"], path["advantages"]])
    baseline = utils.LinearFeatureBaseline()
    found["before"] = baseline.predict(paths[0])
    baseline.fit(paths)
    found["predicted"] = baseline.predict(paths[1])
    other = utils.LinearFeatureBaseline()
    other.set_param_values(baseline.get_param_values())
    found["copied"] = other.predict(paths[1])
    for index in (0, 2):
        space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        config = {"policy_config": {}, "num_workers": 2, "worker_index": index}
        told = {"model": None, "framework": "torch", **config}
        made = utils.MBMPOExploration(space, **told)
        found[f"exploration.{index}"] = made.random_timesteps


QUESTIONS = (of_losses, of_workers, of_models, of_utilities)
