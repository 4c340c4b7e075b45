"""What the losses of RNNSAC and QMIX of Ray 1.13.0 compute."""

import gym
import numpy as np
import torch
from ray.rllib.agents.qmix.mixers import QMixer
from ray.rllib.agents.qmix.model import RNNModel
from ray.rllib.agents.qmix.qmix_policy import QMixLoss
from ray.rllib.agents.sac import rnnsac_torch_policy as parts
from ray.rllib.agents.sac.rnnsac import DEFAULT_CONFIG
from ray.rllib.models.catalog import MODEL_DEFAULTS
from ray.rllib.policy.sample_batch import SampleBatch

#: The column of what has ended, which changed its name.
ENDED = getattr(SampleBatch, "TERMINATEDS", "dones")


def fill(module, scale=0.4):
    """Gives a module weights that anybody can make."""
    state = module.state_dict()
    for index, name in enumerate(sorted(state)):
        if not name.startswith(("target_entropy", "log_alpha")):
            values = torch.sin(torch.arange(state[name].numel()).float() * 1.7 + index)
            state[name] = values.reshape(state[name].shape) * scale
    module.load_state_dict(state)
    return module


def of_rnnsac(found):
    box, actions = gym.spaces.Box(-1.0, 1.0, (3,), np.float32), gym.spaces.Discrete(2)
    for name, twin, burn_in in (("twin", True, 1), ("one", False, 0)):
        own = {"use_lstm": True, "lstm_cell_size": 3, "fcnet_hiddens": [4]}
        config = dict(DEFAULT_CONFIG, framework="torch", model=dict(MODEL_DEFAULTS), twin_q=twin)
        config.update(policy_model=dict(own), Q_model=dict(own), burn_in=burn_in, n_step=2)
        config.update(initial_alpha=0.7, target_entropy="auto")
        policy = type("Policy", (), {"config": config, "action_space": actions})
        built = parts.build_sac_model_and_action_dist(policy, box, actions, config)
        policy.model, kind = built
        found[name + ".class"] = np.array(kind.__name__)
        policy.target_models = {policy.model: policy.target_model}
        fill(policy.model), fill(policy.target_model, 0.3)
        states = policy.model.get_initial_state()
        found[name + ".states"] = [len(states), *(len(s) for s in states)]
        steps = torch.arange(24).float().reshape(8, 3)
        batch = SampleBatch(
            {
                "obs": torch.cos(steps),
                "new_obs": torch.sin(steps),
                "actions": torch.tensor([0, 1, 1, 0, 1, 0, 0, 0]),
                "prev_actions": torch.tensor([0, 0, 1, 1, 0, 1, 0, 0]),
                "rewards": torch.tensor([1.0, -2.0, 0.5, 3.0, 1.0, 1.0, 0.0, 2.0]),
                "prev_rewards": torch.zeros(8),
                ENDED: torch.tensor([False, True, False, False, False, False, False, False]),
                "weights": torch.tensor([1.0, 0.5, 2.0, 1.0, 1.0, 1.5, 1.0, 1.0]),
                "seq_lens": torch.tensor([4, 3]),
            }
        )
        for index in range(len(states)):
            batch["state_in_%d" % index] = torch.zeros(2, 3) + 0.1 * index  # noqa: UP031
        losses = parts.actor_critic_loss(policy, policy.model, None, batch)
        found[name + ".losses"] = torch.stack(list(losses))
        told = policy.model.tower_stats
        for key in ("q_t", "policy_t", "log_pis_t", "td_error"):
            found[name + "." + key] = told[key]
        for index, loss in enumerate(losses):
            policy.model.zero_grad()
            loss.backward(retain_graph=True)
            for weight_name, weight in sorted(policy.model.named_parameters()):
                if weight.grad is not None and weight.grad.any():
                    found[f"{name}.gradient.{index}.{weight_name}"] = weight.grad.clone()
        seen = SampleBatch({n: batch[n] for n in ("obs", "prev_actions", "prev_rewards")})
        given = [batch[f"state_in_{index}"] for index in range(len(states))]
        acted = parts.action_distribution_fn(
            policy, policy.model, seen, state_batches=given, seq_lens=batch["seq_lens"]
        )
        found[name + ".acted"], found[name + ".after"] = acted[0], torch.stack(list(acted[2]))


def of_qmix(found):
    box, actions = gym.spaces.Box(-1.0, 1.0, (2,), np.float32), gym.spaces.Discrete(3)
    config = {"lstm_cell_size": 4, "n_agents": 2}
    networks = [fill(RNNModel(box, actions, 3, config, "model"), scale) for scale in (0.4, 0.3)]
    mixers = [fill(QMixer(2, (2, 2), 3), scale) for scale in (0.4, 0.3)]
    numbers = torch.sin(torch.arange(48).float()).reshape(2, 2, 3, 2, 2)
    told = {
        "rewards": torch.arange(12).float().reshape(2, 3, 2) / 6,
        "actions": torch.arange(12).reshape(2, 3, 2) % 3,
        "terminated": torch.tensor([[0.0, 0, 1], [0, 0, 0]]).unsqueeze(-1).expand(2, 3, 2),
        "mask": torch.tensor([[1.0, 1, 1], [1, 1, 0]]).unsqueeze(-1).expand(2, 3, 2),
        "obs": numbers[0],
        "next_obs": numbers[1],
        "action_mask": torch.ones(2, 3, 2, 3),
        "next_action_mask": torch.tensor([1.0, 0, 1]).expand(2, 3, 2, 3),
    }
    for name, double, mixed in (("double", True, True), ("plain", False, False)):
        given = dict(told)
        if mixed:
            given.update({key: told[key][..., :1] for key in ("rewards", "terminated", "mask")})
        both = mixers if mixed else [None, None]
        loss = QMixLoss(*networks, *both, 2, 3, double_q=double, gamma=0.9)
        made = loss(**given)
        for index, value in enumerate(made):
            found[f"qmix.{name}.{index}"] = value
        networks[0].zero_grad()
        made[0].backward()
        for key, weight in networks[0].named_parameters():
            found[f"qmix.{name}.gradient.{key}"] = weight.grad.clone()
    try:
        loss(**dict(given, state=numbers[0]))
    except ValueError:
        found["qmix.refused"] = 1


QUESTIONS = (of_rnnsac, of_qmix)
