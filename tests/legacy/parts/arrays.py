"""What functions of arrays and choices of policies of Ray 0.8.5 give."""

import gym
import numpy as np
from ray.rllib.agents.a3c.a3c import get_policy_class as of_a3c
from ray.rllib.agents.ppo import utils
from ray.rllib.agents.ppo.appo import initialize_target, update_target_and_kl
from ray.rllib.agents.ppo.ppo import get_policy_class as of_ppo
from ray.rllib.agents.ppo.ppo import update_kl
from ray.rllib.policy.policy import clip_action
from ray.rllib.utils import memory


def of_arrays(found):
    first = {"actions": np.arange(12).reshape(2, 3, 2), "more": np.arange(6).reshape(2, 3)}
    for name, value in utils.flatten(dict(first)).items():
        found[f"flat.{name}"] = value
    for name, value in utils.concatenate([first, first]).items():
        found[f"both.{name}"] = value
    np.random.seed(2)
    for name, value in utils.shuffle(utils.flatten(dict(first))).items():
        found[f"shuffled.{name}"] = value
    made = memory.aligned_array(7, np.dtype(np.float32))
    found["aligned"] = [len(made), made.ctypes.data % 64, memory.RLLIB_DEBUG_EXPLICIT_FREE]
    found["aligned.none"] = memory.aligned_array(0, np.dtype(np.float32))
    for kind in (np.float32, np.int64):
        found[f"joined.{kind.__name__}"] = memory.concat_aligned(
            [np.ones((2, 3), kind), np.zeros((1, 3), kind)]
        )
    found["joined.one"], found["joined.none"] = memory.concat_aligned([made * 0]), 0
    space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    found["clipped"] = clip_action(np.array([-3.0, 0.5]), space)


def of_updates(found):
    calls = []

    class Policy:
        def update_kl(self, kl):
            calls.append(f"kl {kl}")

        def update_target(self):
            calls.append("target")

    class Local:
        def for_policy(self, call):
            return call(Policy())

        def foreach_trainable_policy(self, call):
            return [call(Policy(), name) for name in ("a", "b")]

    class Workers:
        def local_worker(self):
            return Local()

    class Trainer:
        workers = Workers()

        class optimizer:
            class learner:
                num_steps, stats = 5, {"kl": 0.5}

    trainer = Trainer()
    trainer.config = {"num_sgd_iter": 2, "minibatch_buffer_size": 3, "use_kl_loss": True}
    update_kl(trainer, {"kl": 0.1})
    update_kl(trainer, {"a": {"kl": 0.2}, "b": {"kl": 0.3}})
    initialize_target(trainer)
    calls.append(str(trainer.target_update_frequency))
    update_target_and_kl(trainer, None)
    trainer.optimizer.learner.num_steps = 6
    update_target_and_kl(trainer, None)
    calls.append(str(trainer.optimizer.learner.num_steps))
    found["calls"] = np.array(calls)
    kinds = [of_ppo({"use_pytorch": False}), of_a3c({"use_pytorch": False})]
    found["policies"] = np.array([kind.__name__ for kind in kinds])


QUESTIONS = (of_arrays, of_updates)
