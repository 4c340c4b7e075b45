"""What the bandits' models and policy of Ray 1.13.0 compute."""

import gym
import numpy as np
import torch
from ray.rllib.agents.bandit import bandit_torch_model as models
from ray.rllib.agents.bandit.bandit_torch_policy import (
    BanditPolicyOverrides,
    init_cum_regret,
    make_model_and_action_dist,
)

SEEN = torch.tensor([[1.0, 0.5, -0.3], [0.2, -1.0, 2.0]])
REWARDS, ARMS = torch.tensor([1.0, -2.0]), torch.tensor([1, 0])
TABLE = torch.arange(24).float().reshape(2, 4, 3) / 10 - 1


class Policy(BanditPolicyOverrides):
    """What a policy has that learns so."""

    framework = "torch"

    def __init__(self, space, config):
        self.observation_space = space
        self.model, self.dist_class = make_model_and_action_dist(
            self, space, gym.spaces.Discrete(2), config
        )
        init_cum_regret(self)

    def _lazy_tensor_dict(self, batch):
        return {name: value for name, value in batch.items() if name != "infos"}


def of_regression(found):
    for name, settings in (("default", {}), ("set", {"alpha": 2.0, "lambda_": 0.5})):
        made = models.OnlineLinearRegression(3, **settings)
        torch.manual_seed(3)
        found[name + ".first"] = made.sample_theta()
        for row in range(2):
            made.partial_fit(SEEN[[row]], REWARDS[[row]])
        found[name + ".theta"], found[name + ".covariance"] = made.theta, made.covariance
        found[name + ".precision"], found[name + ".f"] = made.precision, made.f
        found[name + ".time"] = made.time
        torch.manual_seed(3)
        found[name + ".sampled"] = made.sample_theta()
        found[name + ".ucbs"] = made.get_ucbs(SEEN)
        found[name + ".ucbs.table"] = made.get_ucbs(TABLE)
        found[name + ".forward"] = made(SEEN)
        torch.manual_seed(5)
        found[name + ".forward.sampled"] = made(SEEN, True)


def of_models(found):
    box = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
    items = gym.spaces.Box(-1.0, 1.0, (12,), np.float32)
    items.original_space = gym.spaces.Dict({"item": gym.spaces.Box(-1.0, 1.0, (4, 3), np.float32)})
    for kind in ("", "UCB", "ThompsonSampling"):
        for stem, space, seen, chosen in (
            ("Discrete", box, SEEN, ARMS),
            ("Parametric", items, {"item": TABLE}, torch.tensor([2, 0])),
        ):
            name = stem + "LinearModel" + kind
            made = getattr(models, name)(space, gym.spaces.Discrete(4), 4, {"alpha": 0.5}, name)
            made.partial_fit(seen, REWARDS, chosen)
            torch.manual_seed(7)
            scores, state = made.forward({"obs": seen}, ["state"], None)
            found[name + ".scores"], found[name + ".state"] = scores, len(state)
            found[name + ".value"], found[name + ".seen"] = (
                made.value_function(),
                made.current_obs(),
            )
            for how in ({"use_ucb": True}, {"sample_theta": True}):
                torch.manual_seed(8)
                found[name + "." + next(iter(how))] = made.predict(made.current_obs(), **how)
            found[name + ".names"] = np.array(sorted(made.state_dict()))


def of_policy(found):
    box = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
    for kind in (None, "ThompsonSampling", "UpperConfidenceBound"):
        config = {"model": {}, "exploration_config": kind and {"type": kind}}
        policy = Policy(box, config)
        told = []
        for infos in ([{"regret": 0.5}, {"regret": 1.0}], [{"regret": 2.0}, {"regret": 0.0}]):
            batch = {"obs": SEEN, "rewards": REWARDS, "actions": ARMS, "infos": infos}
            told.append(policy.learn_on_batch(Batch(batch))["learner_stats"])
        found[f"policy.{kind}"] = np.array(
            [type(policy.model).__name__, policy.dist_class.__name__, *sorted(told[-1])]
        )
        found[f"policy.{kind}.regret"] = [stats["cumulative_regret"] for stats in told]
        found[f"policy.{kind}.theta"] = policy.model.arms[0].theta


class Batch(dict):
    """A batch that gives its rows."""

    def rows(self):
        for index in range(len(self["infos"])):
            yield {name: values[index] for name, values in self.items()}


QUESTIONS = (of_regression, of_models, of_policy)
