"""What the models, the loss and other parts of SlateQ of Ray 1.13.0 compute."""

import gym
import numpy as np
import torch
from ray.rllib.agents.slateq import slateq_torch_policy as parts
from ray.rllib.agents.slateq.slateq import calculate_round_robin_weights
from ray.rllib.agents.slateq.slateq_torch_model import UserChoiceModel
from ray.rllib.policy.sample_batch import SampleBatch

VECTOR = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
PLACE = gym.spaces.Dict({"click": gym.spaces.Discrete(2), "watch_time": VECTOR})
SPACE = gym.spaces.Dict(
    {
        "user": VECTOR,
        "doc": gym.spaces.Dict({str(index): VECTOR for index in range(3)}),
        "response": gym.spaces.Tuple([PLACE, PLACE]),
    }
)
ACTIONS = gym.spaces.MultiDiscrete([3, 3])


class Policy:
    """What the parts use of a policy."""

    observation_space, action_space = SPACE, ACTIONS

    def __init__(self, config):
        self.config = config
        parts.setup_early(self, SPACE, ACTIONS, config)
        made = parts.build_slateq_model_and_distribution(self, SPACE, ACTIONS, config)
        self.model, self.dist_class = made
        self.target_models = {self.model: self.target_model}

    def get_tower_stats(self, name):
        return [self.model.tower_stats[name]]


def fill(module, scale):
    """Gives a module weights that anybody can make."""
    state = module.state_dict()
    for index, name in enumerate(sorted(state)):
        values = torch.sin(torch.arange(state[name].numel()).float() * 1.7 + index)
        state[name] = values.reshape(state[name].shape) * scale
    module.load_state_dict(state)


def observed(start):
    rows = torch.sin(torch.arange(32).float() + start).reshape(4, 8)
    clicks = torch.tensor([[1, 0], [0, 0], [0, 1], [1, 0]])
    return {
        "user": rows[:, :2],
        "doc": {str(index): rows[:, 2 * index + 2 : 2 * index + 4] for index in range(3)},
        "response": [
            {"click": clicks[:, place], "watch_time": rows[:, place] + 2.0} for place in (0, 1)
        ],
    }


def of_losses(found):
    for name, huber in (("squares", False), ("huber", True)):
        config = {"model": {}, "fcnet_hiddens_per_candidate": [4, 3], "gamma": 0.9, "lr": 0.1}
        config.update(use_huber=huber, huber_threshold=0.5, lr_choice_model=0.2)
        config.update(rmsprop_epsilon=1e-5, slateq_strategy="SARSA")
        policy = Policy(config)
        fill(policy.model, 0.5), fill(policy.target_model, 0.4)
        batch = {
            "obs": observed(0.0),
            "new_obs": observed(1.0),
            "actions": torch.tensor([[0, 1], [2, 1], [1, 0], [2, 0]]),
            "rewards": torch.zeros(4),
            getattr(SampleBatch, "TERMINATEDS", "dones"): torch.tensor([False, True, False, False]),
        }
        losses = parts.build_slateq_losses(policy, policy.model, None, batch)
        found[f"{name}.losses"] = torch.stack(losses)
        for index, loss in enumerate(losses):
            policy.model.zero_grad()
            loss.backward(retain_graph=True)
            for weight_name, weight in sorted(policy.model.named_parameters()):
                if weight.grad is not None and weight.grad.any():
                    found[f"{name}.gradient.{index}.{weight_name}"] = weight.grad.clone()
        for key, value in sorted(parts.build_slateq_stats(policy, None).items()):
            found[f"{name}.stats.{key}"] = float(value)
        found[f"{name}.errors"] = policy.model.tower_stats["td_error"]
    found["names"] = np.array(sorted(policy.model.state_dict()))
    found["slates"], found["indices"] = policy.slates, policy.slates_indices
    values, kind, _state = parts.action_distribution_fn(
        policy, policy.model, {"obs": observed(0.0)}, explore=True, is_training=False
    )
    found["values"], found["kind"] = values, np.array(kind.__name__)
    made = parts.optimizer_fn(policy, config)
    found["optimizers"] = np.array([type(optimizer).__name__ for optimizer in made])
    settings = [made[1].defaults[key] for key in ("lr", "eps", "momentum", "weight_decay")]
    found["rmsprop"] = [*settings, made[1].defaults["centered"]]
    policy._no_tracing = True
    columns = {"actions": np.array([[0, 1], [2, 1], [1, 0]]), "dones": [False, False, True]}
    made = parts.postprocess_fn_add_next_actions_for_sarsa(policy, columns)
    found["next_actions"] = made["next_actions"]


def of_scores(found):
    seen = observed(0.5)
    docs = list(seen["doc"].values())
    for name, told in (("plain", {}), ("shifted", {"no_click_score": 0.5, "min_normalizer": -2})):
        scores, none = parts.score_documents(seen["user"], docs, **told)
        found[f"scores.{name}"], found[f"scores.{name}.none"] = scores, none
    scores, none = parts.score_documents(seen["user"], docs, multinomial_logits=True)
    found["scores.logits"], found["scores.logits.none"] = scores, none
    choice = UserChoiceModel()
    with torch.no_grad():
        choice.beta.fill_(0.7), choice.score_no_click.fill_(-0.2)
    found["choice"] = choice(seen["user"], torch.stack(docs, 1))
    told = {"train_batch_size": 32, "rollout_fragment_length": 4}
    for intensity in (None, 4.0):
        made = calculate_round_robin_weights(dict(told, training_intensity=intensity))
        found[f"weights.{intensity}"] = np.asarray(made, float)


QUESTIONS = (of_losses, of_scores)
