"""Records what the linear bandits of an old Ray learned of made-up steps, and what they chose.

Usage: `python record_bandits.py OUT`, with the Python of an environment that has Ray 1.13.0 and
torch (it runs on Python 3.8). It writes `OUT/<case>.npz`; `tests/unit/algorithms/test_bandits.py`
compares. A case holds, by name:

    config.alpha, .lambda_
    step.<i>.obs, .action, .reward      a step; `obs` is a table where items are chosen
    step.<i>.scores                     what each arm was thought to be worth before the step
    precision, f, theta, covariance     after all steps, a row for each arm
    posterior                           the covariance that Thompson sampling drew with at the end
"""

import sys
from unittest import mock

import gym
import numpy as np
import torch

# The TensorFlow policy, which is imported and not used, asks for it.
sys.modules.setdefault("tensorflow_probability", mock.MagicMock())

from ray.rllib.agents.bandit.bandit import BanditLinTSTrainer, BanditLinUCBTrainer  # noqa: E402
from ray.rllib.agents.bandit.bandit_torch_policy import BanditTorchPolicy  # noqa: E402
from ray.rllib.models.preprocessors import get_preprocessor  # noqa: E402
from ray.rllib.policy.sample_batch import SampleBatch  # noqa: E402
from recording import record_all  # noqa: E402

ARMS, SIZE, STEPS = 3, 4, 25
VECTOR = gym.spaces.Box(-2.0, 2.0, (SIZE,), np.float32)
ITEMS = gym.spaces.Dict({"item": gym.spaces.Box(-2.0, 2.0, (ARMS, SIZE), np.float32)})

#: Case → trainer, observations, settings of the model.
CASES = {
    "ucb-arms": (BanditLinUCBTrainer, VECTOR, {}),
    "ucb-arms-wide": (BanditLinUCBTrainer, VECTOR, {"alpha": 2.5, "lambda_": 0.5}),
    "ucb-items": (BanditLinUCBTrainer, ITEMS, {}),
    "ts-arms": (BanditLinTSTrainer, VECTOR, {"alpha": 0.3}),
    "ts-items": (BanditLinTSTrainer, ITEMS, {"lambda_": 2.0}),
}


def record(case):
    """Records one case."""
    trainer, space, settings = CASES[case]
    config = trainer.get_default_config()
    config["model"] = dict(config["model"], **settings)
    preprocessor = get_preprocessor(space)(space)
    policy = BanditTorchPolicy(preprocessor.observation_space, gym.spaces.Discrete(ARMS), config)
    random = np.random.RandomState(7)
    found = {"config." + name: value for name, value in settings.items()}
    truth = random.randn(ARMS, SIZE)
    for number in range(STEPS):
        seen = {"item": random.uniform(-2, 2, (ARMS, SIZE)).astype(np.float32)}
        seen = seen if space is ITEMS else random.uniform(-2, 2, SIZE).astype(np.float32)
        flat = preprocessor.transform(seen)
        if "ucb" in case:
            action, _, extra = policy.compute_actions(flat[None], explore=True)
            scores = extra["action_dist_inputs"][0]
            assert action[0] == scores.argmax()
        else:  # what it draws is random; what it expects is not
            context = torch.from_numpy(seen["item"] if space is ITEMS else seen)[None]
            scores = policy.model.predict(context)[0].numpy()
            action = [random.randint(ARMS)]
        x = seen["item"][action[0]] if space is ITEMS else seen
        reward = np.float32(truth[0 if space is ITEMS else action[0]] @ x + random.randn())
        step = {"obs": flat, "action": action[0], "reward": reward, "scores": scores}
        found.update({f"step.{number}.{name}": value for name, value in step.items()})
        found[f"step.{number}.obs"] = seen["item"] if space is ITEMS else seen
        policy.learn_on_batch(
            SampleBatch(
                {
                    "obs": flat[None],
                    "actions": np.array([action[0]]),
                    "rewards": np.array([reward]),
                    "infos": np.array([{}]),
                }
            )
        )
    arms = [policy.model.arm] if space is ITEMS else list(policy.model.arms)
    for name in ("precision", "f", "theta", "covariance"):
        found[name] = np.stack([getattr(arm, name).numpy() for arm in arms])
    factors = [arm.dist._unbroadcasted_scale_tril.numpy() for arm in arms]  # what `sample` uses
    found["posterior"] = np.stack([factor @ factor.T for factor in factors])
    return found


if __name__ == "__main__":
    torch.manual_seed(7)
    record_all(record, CASES)
