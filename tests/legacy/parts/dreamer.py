"""What the networks, the loss and the buffer of Dreamer of Ray 1.13.0 compute."""

import random

import gym
import numpy as np
import torch
from ray.rllib.agents.dreamer import dreamer_torch_policy as parts
from ray.rllib.agents.dreamer import utils
from ray.rllib.agents.dreamer.dreamer import EpisodicBuffer, total_sampled_timesteps
from ray.rllib.agents.dreamer.dreamer_model import (
    RSSM,
    ActionDecoder,
    ConvDecoder,
    ConvEncoder,
    DenseDecoder,
    DreamerModel,
)
from ray.rllib.policy.sample_batch import SampleBatch

IMAGES = gym.spaces.Box(-0.5, 0.5, (3, 64, 64), np.float32)
ACTIONS = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)


def fill(module):
    """Gives a module weights that anybody can make."""
    state = module.state_dict()
    for index, name in enumerate(sorted(state)):
        values = torch.sin(torch.arange(state[name].numel()).float() * 1.7 + index)
        state[name] = values.reshape(state[name].shape) * 0.15
    module.load_state_dict(state)
    return module


def made_model():
    sizes = {"depth_size": 1, "deter_size": 4, "stoch_size": 3, "hidden_size": 5}
    return fill(DreamerModel(IMAGES, ACTIONS, 1, sizes, "model"))


def of_layers(found):
    kinds = (
        (utils.Linear, (3, 4)),
        (utils.Conv2d, (2, 3, 2)),
        (utils.ConvTranspose2d, (2, 3, 2)),
        (utils.GRUCell, (3, 4)),
    )
    for kind, sizes in kinds:
        torch.manual_seed(2)
        for name, weight in sorted(kind(*sizes).state_dict().items()):
            found[f"{kind.__name__}.{name}"] = weight
    squash = utils.TanhBijector()
    x = torch.tensor([-3.0, -0.5, 0.0, 0.2, 9.0])
    found["squash"], found["squash.inverse"] = squash(x), squash.inv(torch.tensor([-1.0, 0.3]))
    found["squash.shrinks"], found["squash.sign"] = squash.log_abs_det_jacobian(x, None), 1.0
    layer = torch.nn.Linear(2, 2)
    layer.bias.requires_grad = False
    with utils.FreezeParameters(list(layer.parameters())):
        frozen = [weight.requires_grad for weight in layer.parameters()]
    found["frozen"] = frozen + [weight.requires_grad for weight in layer.parameters()]


def of_networks(found):
    images = torch.sin(torch.arange(2 * 3 * 64 * 64).float()).reshape(1, 2, 3, 64, 64) / 2
    found["encoder"] = fill(ConvEncoder(1))(images)
    decoded = fill(ConvDecoder(4, depth=1))(torch.arange(8).float().reshape(1, 2, 4) / 8)
    found["decoder"], found["decoder.logp"] = decoded.mean[..., ::9, ::9], decoded.log_prob(images)
    seen = torch.arange(8).float().reshape(2, 4) / 4
    for name, told in (("one", (1, 2, 3)), ("two", (2, 1, 3)), ("binary", (1, 1, 3, "binary"))):
        dense = fill(DenseDecoder(4, *told))(seen)
        found[f"dense.{name}"], found[f"dense.{name}.shape"] = dense.mean, list(dense.batch_shape)
    actor = fill(ActionDecoder(4, 2, 2, 3))(seen)
    torch.manual_seed(4)
    drawn = actor.sample()
    found["actor.drawn"], found["actor.logp"] = drawn, actor.log_prob(drawn)
    world = fill(RSSM(2, 5, stoch=3, deter=4, hidden=6))
    embed = torch.cos(torch.arange(30).float()).reshape(2, 3, 5)
    acted = torch.sin(torch.arange(12).float()).reshape(2, 3, 2)
    torch.manual_seed(6)
    post, prior = world.observe(embed, acted)
    ahead = world.imagine(acted, [part[:, -1] for part in post])
    for name, state in (("post", post), ("prior", prior), ("ahead", ahead)):
        for index, part in enumerate(state):
            found[f"world.{name}.{index}"] = part
    found["world.feature"] = world.get_feature(post)
    found["world.names"] = np.array(sorted(world.state_dict()))


def of_losses(found):
    model = made_model()
    found["model.names"] = np.array(sorted(model.state_dict()))
    images = torch.sin(torch.arange(2 * 7 * 3 * 64 * 64).float()).reshape(2, 7, 3, 64, 64) / 2
    actions = torch.cos(torch.arange(28).float()).reshape(2, 7, 2)
    rewards = torch.arange(14).float().reshape(2, 7) / 7
    config = {"imagine_horizon": 4, "discount": 0.95, "lambda": 0.9, "kl_coeff": 0.8}
    config.update(free_nats=0.01, td_model_lr=0.1, actor_lr=0.2, critic_lr=0.3)
    policy = type("Policy", (), {"model": model, "config": config})
    batch = {"obs": images, "actions": actions, "rewards": rewards, "log_gif": True}
    torch.manual_seed(8)
    losses = parts.dreamer_loss(policy, model, None, batch)
    found["losses"] = torch.stack(losses)
    for name, value in sorted(parts.dreamer_stats(policy, None).items()):
        found[f"stats.{name}"] = value[..., ::9, ::9] if value.dim() else value
    for index, loss in enumerate(losses):
        model.zero_grad()
        loss.backward(retain_graph=True)
        for name, weight in sorted(model.named_parameters()):
            if weight.grad is not None and weight.grad.any():
                found[f"gradient.{index}.{name}"] = weight.grad.sum()
    made = parts.dreamer_optimizer_fn(policy, config)
    groups = [optimizer.param_groups[0] for optimizer in made]
    found["optimizers"] = [(group["lr"], len(group["params"])) for group in groups]
    value = torch.arange(12).float().reshape(4, 3) / 3
    found["lambda"] = parts.lambda_return(value, value + 1, value * 0 + 0.9, value[-1], 0.8)


def of_acting(found):
    model = made_model()
    config = {"prefill_timesteps": 3, "explore_noise": 0.1, "action_repeat": 2}
    policy = type("Policy", (), {"config": config, "global_timestep": 0})
    seen = {"obs": torch.sin(torch.arange(3 * 64 * 64).float()).reshape(1, 3, 64, 64) / 2}
    torch.manual_seed(9)
    state = None
    for step in (3, 4, 5):
        state = state or [torch.zeros(1, 1, 1)]
        action, logp, state = parts.action_sampler_fn(policy, model, seen, state, True, step)
        found[f"acted.{step}"], found[f"acted.{step}.logp"] = action, -1 if logp is None else logp
        found[f"acted.{step}.state"] = torch.cat(state, -1)
    found["acted.steps"] = policy.global_timestep
    worker = type("Worker", (), {"policy_map": {"default_policy": policy}})
    found["acted.total"] = total_sampled_timesteps(worker)


def episode(length, number):
    columns = {"obs": np.arange(length, dtype=np.float32), "rewards": np.ones(length)}
    columns.update(new_obs=columns["obs"] + 1, eps_id=np.full(length, number))
    columns["actions"] = np.arange(2.0 * length).reshape(length, 2)
    columns[getattr(SampleBatch, "TERMINATEDS", "dones")] = np.arange(length) == length - 1
    return SampleBatch(columns)


def of_buffer(found):
    made = parts.preprocess_episode(None, episode(4, 7))
    for name in ("obs", "actions", "rewards", "eps_id"):
        found[f"episode.{name}"] = made[name]
    buffer = EpisodicBuffer(max_length=3, length=4)
    for number, length in enumerate((5, 9, 3, 6)):
        buffer.add(episode(length, number))
    found["buffer"] = [buffer.timesteps, len(buffer.episodes)]
    random.seed(3)
    drawn = buffer.sample(3)
    found["buffer.ids"], found["buffer.obs"] = drawn["eps_id"], drawn["obs"]


QUESTIONS = (of_layers, of_networks, of_losses, of_acting, of_buffer)
