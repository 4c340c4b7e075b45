"""What operators of trainers and wrappers of environments of Ray 1.13.0 do."""

import logging
import sys
import types

import gym
import numpy as np

for name in ("recsim", "recsim.document", "recsim.simulator", "recsim.user"):
    # The wrappers' module imports it, and this script needs the wrappers alone.
    sys.modules.setdefault(name, types.ModuleType(name))
sys.modules["recsim.document"].AbstractDocumentSampler = object
sys.modules["recsim.user"].AbstractUserModel = sys.modules["recsim.user"].AbstractResponse = object
sys.modules["recsim.simulator"].environment = sys.modules["recsim.simulator"].recsim_gym = None
from ray.rllib.agents import callbacks  # noqa: E402
from ray.rllib.agents.es.es import get_policy_class  # noqa: E402
from ray.rllib.agents.ppo.appo import UpdateTargetAndKL  # noqa: E402
from ray.rllib.agents.ppo.ppo import UpdateKL, warn_about_bad_reward_scales  # noqa: E402
from ray.rllib.contrib.registry import CONTRIBUTED_ALGORITHMS  # noqa: E402
from ray.rllib.env.wrappers import recsim  # noqa: E402
from ray.rllib.env.wrappers.atari_wrappers import ScaledFloatFrame  # noqa: E402
from ray.rllib.env.wrappers.uncertainty_wrappers import add_RewardUncertaintyEnvClassWrapper  # noqa: E402
from ray.rllib.offline import off_policy_estimator  # noqa: E402
from ray.tune.logger import VALID_SUMMARY_TYPES  # noqa: E402


class Counting(logging.Handler):
    """Counts what is logged."""

    count = 0

    def emit(self, record):
        self.count += 1


def of_updates(found):
    calls = []

    class Policy:
        def __init__(self, name):
            self.name = name

        def update_kl(self, kl):
            calls.append(f"{self.name} {kl}")

    class Local:
        def foreach_policy_to_train(self, call):
            return [call(Policy(name), name) for name in ("a", "b", "c")]

    workers = type("Workers", (), {"local_worker": lambda self: Local()})()
    UpdateKL(workers)({n: {"learner_stats": {"kl": v}} for n, v in (("a", 0.1), ("c", 0.5))})
    config = {"num_sgd_iter": 3, "minibatch_buffer_size": 4, "use_kl_loss": True}
    found["frequency"] = UpdateTargetAndKL(workers, config).target_update_freq
    found["updates"] = np.array(calls)
    found["policies"] = np.array([get_policy_class({"framework": "torch"}).__name__])


def of_warnings(found):
    result = {"policy_reward_mean": {}, "episode_reward_mean": 50.0, "info": {}}
    counted = []
    for shared, loss, reward, clip in (
        (True, 500.0, 50.0, 10.0),
        (False, 500.0, 5000.0, 10.0),
        (True, 1.0, 50.0, 0.0),
        (True, 50.0, 2000.0, 10.0),
    ):
        config = {"vf_loss_coeff": 0.5, "vf_clip_param": clip, "model": {"vf_share_layers": shared}}
        stats = {"learner_stats": {"vf_loss": loss, "policy_loss": 0.1}}
        told = dict(result, episode_reward_mean=reward, info={"learner": {"default_policy": stats}})
        handler = Counting()
        logging.getLogger("").addHandler(handler)
        for name in list(logging.root.manager.loggerDict):
            if name.startswith(("ray.rllib.agents", "rllib_compat")):
                logging.getLogger(name).addHandler(handler)
        returned = warn_about_bad_reward_scales(config, told)
        for name in ["", *logging.root.manager.loggerDict]:
            logging.getLogger(name).removeHandler(handler)
        counted.append([handler.count > 0, returned is told])
    several = dict(result, policy_reward_mean={"a": 1.0})
    counted.append([False, warn_about_bad_reward_scales({}, several) is several])
    found["warnings"] = counted


def of_wrappers(found):
    vector = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    class Shop(gym.Env):
        """Documents whose names change."""

        steps = 0
        action_space = gym.spaces.MultiDiscrete([3, 2])
        taken = None

        @property
        def observation_space(self):
            docs = {str(self.steps + index): vector for index in range(3)}
            place = gym.spaces.Dict({"click": gym.spaces.Discrete(2)})
            parts = {"user": vector, "doc": gym.spaces.Dict(docs)}
            return gym.spaces.Dict({**parts, "response": gym.spaces.Tuple([place])})

        def _seen(self):
            docs = {str(self.steps + n): np.full(2, n / 4, np.float32) for n in range(3)}
            return {"user": np.ones(2, np.float32), "doc": docs, "response": ({"click": 1},)}

        def reset(self):
            return dict(self._seen(), response=None)

        def step(self, action):
            self.taken, self.steps = list(map(int, action)), self.steps + 1
            return self._seen(), 1.0, False, {}

    for name, told in (("plain", {}), ("discrete", {"convert_to_discrete_action_space": True})):
        shop = Shop()
        env = recsim.recsim_gym_wrapper(shop, **told)
        found[f"shop.{name}.first"] = np.stack(list(env.reset()["doc"].values()))
        if told:
            found["shop.actions"] = int(env.action_space.n)
            env.step(4)
            found["shop.taken"] = shop.taken
    env = recsim.recsim_gym_wrapper(Shop(), wrap_for_bandits=True)
    first = env.reset()
    found["shop.item"], found["shop.item.shape"] = (
        first["item"],
        env.observation_space["item"].shape,
    )
    found["shop.keys"] = np.array(sorted(first))
    try:
        image = gym.spaces.Box(0, 255, (2, 2), np.uint8)
        screen = type("Screen", (gym.Env,), {"observation_space": image, "action_space": vector})
        recsim.MultiDiscreteToDiscreteActionWrapper(screen())
    except Exception as error:
        found["shop.refused"] = np.array(type(error).__name__)
    scaled = ScaledFloatFrame(screen())
    found["scaled"] = scaled.observation(np.array([[0, 51], [102, 255]], np.uint8))
    found["scaled.dtype"] = np.array(str(scaled.observation_space.dtype))

    class Several:
        def step(self, action):
            return {}, {"a": 1.0, "b": 2.0}, {"__all__": False}, {}

    np.random.seed(3)
    noisy = add_RewardUncertaintyEnvClassWrapper(Several, 0.5, 0.1)()
    found["noisy"] = [noisy.step({})[1][agent] for agent in ("a", "b")]


def of_callbacks(found):
    import torch

    made = callbacks.RE3UpdateCallbacks(
        embeds_dim=4, k_nn=2, beta=0.5, beta_schedule="linear_decay"
    )
    made.on_train_result(trainer=None, result={"training_iteration": 3})
    embedded = np.sin(np.arange(20.0)).reshape(5, 4).astype(np.float32)
    for step in range(2):
        batch = {"rewards": np.arange(5.0), "obs_embeds": embedded + step}
        batch.update(advantages=np.ones(5), value_targets=np.zeros(5))
        batch["obs_embeds"] = torch.from_numpy(batch["obs_embeds"])
        made.on_learn_on_batch(policy=None, train_batch=batch, result={})
        columns = [np.asarray(batch[n]) for n in ("rewards", "advantages", "value_targets")]
        found[f"re3.{step}"] = np.stack(columns)
    episode = type("Episode", (), {"custom_metrics": {}})()
    made = callbacks.MemoryTrackingCallbacks()
    made.on_episode_end(worker=None, base_env=None, policies={}, episode=episode)
    told = episode.custom_metrics
    worker = sorted(name for name in told if name.startswith("tracemalloc/worker"))
    found["memory"] = np.array(worker)


def of_small_things(found):
    made = off_policy_estimator.OffPolicyEstimate("is", {"a": 1})
    found["estimate"] = np.array([made.estimator_name, str(made.metrics)])
    found["contributed"] = np.array(sorted(CONTRIBUTED_ALGORITHMS))
    found["kinds"] = np.array(sorted(kind.__name__ for kind in VALID_SUMMARY_TYPES))


QUESTIONS = (of_updates, of_warnings, of_wrappers, of_callbacks, of_small_things)
