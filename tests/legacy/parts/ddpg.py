"""What the model and the policy parts of DDPG and R2D2 of Ray 1.13.0 compute."""

import gym
import numpy as np
import torch
from ray.rllib.agents.ddpg import ddpg_tf_policy, ddpg_torch_policy
from ray.rllib.agents.ddpg.ddpg import DEFAULT_CONFIG as DDPG_CONFIG
from ray.rllib.agents.ddpg.ddpg_torch_model import DDPGTorchModel
from ray.rllib.agents.ddpg.noop_model import TorchNoopModel
from ray.rllib.agents.dqn import r2d2_torch_policy
from ray.rllib.agents.dqn.r2d2 import R2D2_DEFAULT_CONFIG
from ray.rllib.models.catalog import MODEL_DEFAULTS
from ray.rllib.policy.sample_batch import SampleBatch

#: The column of what has ended, which changed its name.
ENDED = getattr(SampleBatch, "TERMINATEDS", "dones")


class Parts:
    """What the parts of policies use of one."""

    framework, device = "torch", torch.device("cpu")

    global_timestep = 0

    def __init__(self, space, actions, config):
        self.observation_space, self.action_space, self.config = space, actions, config

    def get_tower_stats(self, name):
        return [self.model.tower_stats[name]]

    def is_recurrent(self):
        return True

    def _lazy_tensor_dict(self, batch):
        return SampleBatch({name: torch.as_tensor(batch[name]) for name in batch})


class DDPGPolicy(Parts, ddpg_torch_policy.TargetNetworkMixin):
    """One whose target follows."""


class R2D2Policy(Parts, r2d2_torch_policy.TargetNetworkMixin):
    """The same."""


def fill(module):
    """Gives a module weights that anybody can make."""
    state = module.state_dict()
    for index, name in enumerate(sorted(state)):
        if "action_range" not in name and "low_action" not in name:
            count = state[name].numel()
            values = torch.sin(torch.arange(count).float() * 1.7 + index)
            state[name] = values.reshape(state[name].shape) * 0.5
    module.load_state_dict(state)
    return module


def keep_gradients(found, name, model, loss):
    """Keeps the sums of a loss's gradients."""
    model.zero_grad()
    loss.backward(retain_graph=True)
    for weight_name, weight in sorted(model.named_parameters()):
        if weight.grad is not None and weight.grad.any():
            found[f"{name}.gradient.{weight_name}"] = weight.grad.clone()


def of_model(found):
    box = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
    actions = gym.spaces.Box(np.array([-2.0, 0.0]), np.array([1.0, 5.0]), dtype=np.float32)
    hiddens = {"actor_hiddens": [4], "critic_hiddens": [5, 4]}
    for name, more in (
        ("plain", {}),
        ("twin", {"twin_q": True, "add_layer_norm": True, "critic_hidden_activation": "tanh"}),
    ):
        made = fill(DDPGTorchModel(box, actions, 3, MODEL_DEFAULTS, "m", **hiddens, **more))
        seen = torch.arange(6).float().reshape(2, 3) / 4
        acted = made.get_policy_output(seen)
        found[f"model.{name}.actions"] = acted
        found[f"model.{name}.q"] = made.get_q_values(seen, acted)
        if more:
            found[f"model.{name}.twin"] = made.get_twin_q_values(seen, acted)
        found[f"model.{name}.names"] = np.array(list(made.state_dict()))
        counts = len(made.policy_variables()), len(made.q_variables())
        found[f"model.{name}.counts"] = counts
        found[f"model.{name}.q_names"] = np.array(list(made.q_variables(as_dict=True)))


def of_ddpg(found):
    box = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
    actions = gym.spaces.Box(np.array([-2.0, 0.0]), np.array([1.0, 5.0]), dtype=np.float32)
    parts = ddpg_torch_policy
    for name, more in (
        ("ddpg", {"l2_reg": 0.01}),
        ("td3", {"twin_q": True, "smooth_target_policy": True, "l2_reg": None, "n_step": 3}),
        ("huber", {"use_huber": True, "huber_threshold": 0.4, "twin_q": True, "grad_clip": 0.1}),
    ):
        config = dict(DDPG_CONFIG, framework="torch", model=dict(MODEL_DEFAULTS), **more)
        config.update(actor_hiddens=[4], critic_hiddens=[5], policy_delay=2)
        policy = DDPGPolicy(box, actions, config)
        parts.before_init_fn(policy, box, actions, config)
        policy.model, dist = parts.build_ddpg_models_and_action_dist(policy, box, actions, config)
        policy.target_models = {policy.model: policy.target_model}
        found[name + ".dist"] = np.array([dist.__name__, type(policy.model).__name__])
        found[name + ".noop"] = isinstance(policy.model, TorchNoopModel)
        fill(policy.model), fill(policy.target_model)
        parts.setup_late_mixins(policy, box, actions, config)
        with torch.no_grad():
            for weight in policy.target_model.parameters():
                weight.mul_(0.8)
        steps = torch.arange(12).float().reshape(4, 3)
        batch = SampleBatch(
            {
                "obs": torch.cos(steps),
                "obs_flat": torch.cos(steps),
                "new_obs": torch.sin(steps),
                "actions": torch.sin(torch.arange(8).float()).reshape(4, 2),
                "rewards": torch.tensor([1.0, -2.0, 0.5, 3.0]),
                ENDED: torch.tensor([False, True, False, False]),
                "weights": torch.tensor([1.0, 0.5, 2.0, 1.0]),
            }
        )
        torch.manual_seed(4)
        losses = parts.ddpg_actor_critic_loss(policy, policy.model, None, batch)
        found[name + ".actor_loss"], found[name + ".critic_loss"] = losses
        keep_gradients(found, name + ".actor", policy.model, losses[0])
        keep_gradients(found, name + ".critic", policy.model, losses[1])
        for key in ("q_t", "td_error"):
            found[name + "." + key] = policy.model.tower_stats[key]
        for key, value in sorted(parts.build_ddpg_stats(policy, batch).items()):
            found[name + ".stats." + key] = float(value)
        optimizers = parts.make_ddpg_optimizers(policy, config)
        found[name + ".rates"] = [made.param_groups[0]["lr"] for made in optimizers]
        for step in range(3):
            parts.apply_gradients_fn(policy, None)
            found[f"{name}.stepped.{step}"] = policy.model.policy_variables()[0].clone()
            found[f"{name}.critic.{step}"] = policy.model.q_variables()[0].clone()
        found[name + ".steps"] = policy.global_step
        columns = [batch[n] for n in ("obs", "actions", "rewards", "new_obs", ENDED, "weights")]
        torch.manual_seed(4)
        found[name + ".error"] = policy.compute_td_error(*columns)
        policy.update_target()
        found[name + ".target"] = policy.target_model.policy_variables()[0].clone()
        acted = parts.get_distribution_inputs_and_class(policy, policy.model, batch["obs"])
        found[name + ".inputs"], found[name + ".state"] = acted[0], len(acted[2])
        found[name + ".class"] = np.array(acted[1].__name__)
    for space in (box, gym.spaces.Discrete(2), gym.spaces.Box(-1.0, 1.0, (2, 2))):
        try:
            ddpg_tf_policy.validate_spaces(policy, box, space, config)
            told = "fine"
        except Exception as error:
            told = type(error).__name__
        found.setdefault("spaces", []).append(told)


def of_r2d2(found):
    box, actions = gym.spaces.Box(-1.0, 1.0, (3,), np.float32), gym.spaces.Discrete(2)
    parts = r2d2_torch_policy
    for name, more in (
        ("plain", {"burn_in": 0, "use_h_function": False, "double_q": False}),
        ("h", {"burn_in": 1, "h_function_epsilon": 0.5, "dueling": False}),
    ):
        model = dict(MODEL_DEFAULTS, use_lstm=True, lstm_cell_size=3, fcnet_hiddens=[4])
        config = dict(R2D2_DEFAULT_CONFIG, framework="torch", model=model, hiddens=[], **more)
        policy = R2D2Policy(box, actions, config)
        parts.setup_early_mixins(policy, box, actions, config)
        policy.model, dist = parts.build_r2d2_model_and_distribution(policy, box, actions, config)
        found[f"r2d2.{name}.class"] = np.array(dist.__name__)
        target = getattr(policy, "target_model", None) or next(iter(policy.target_models.values()))
        policy.target_models = {policy.model: target}
        fill(policy.model), fill(target)
        parts.before_loss_init(policy, box, actions, config)
        with torch.no_grad():
            for weight in target.parameters():
                weight.mul_(0.8)
        steps = torch.arange(24).float().reshape(8, 3)
        batch = SampleBatch(
            {
                "obs": torch.cos(steps),
                "new_obs": torch.sin(steps),
                "actions": torch.tensor([0, 1, 1, 0, 1, 0, 0, 0]),
                "rewards": torch.tensor([1.0, -2.0, 0.5, 3.0, 1.0, 1.0, 0.0, 2.0]),
                ENDED: torch.tensor([False, True, False, False, False, False, False, False]),
                "weights": torch.tensor([1.0, 0.5, 2.0, 1.0, 1.0, 1.5, 1.0, 1.0]),
                "seq_lens": torch.tensor([4, 3]),
                "state_in_0": torch.zeros(2, 3) + 0.2,
                "state_in_1": torch.zeros(2, 3) - 0.1,
            }
        )
        loss = parts.r2d2_loss(policy, policy.model, None, batch)
        found[f"r2d2.{name}.loss"] = loss
        found[f"r2d2.{name}.errors"] = policy.model.tower_stats["td_error"]
        keep_gradients(found, f"r2d2.{name}", policy.model, loss)
        for key, value in sorted(parts.build_q_stats(policy, batch).items()):
            found[f"r2d2.{name}.stats.{key}"] = float(value)
    policy.config = dict(config, num_atoms=2)
    try:
        parts.r2d2_loss(policy, policy.model, None, batch)
    except Exception:  # whatever says so
        found["r2d2.atoms"] = "refused"


QUESTIONS = (of_model, of_ddpg, of_r2d2)
