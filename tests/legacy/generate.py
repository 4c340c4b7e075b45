#!/usr/bin/env python
"""Write museum cases with the old Ray that is installed in the running Python.

    python generate.py OUT --framework tf|tf2|torch [--cases NAME ...]

Every case trains a tiny PPO for two iterations, saves it as its Ray saves, and records what the
network computes from 16 observations. It becomes OUT/<ray>/<algorithm>-<framework>-<case>/ with

    ckpt/…                  the checkpoint, untouched
    params.json, params.pkl the config as Tune's logger wrote it
    case.json               what was trained, with which versions, and the weights' names
    expected.npz            observations and outputs, see README.md

The script runs on Python 3.6 to 3.11 and on Ray 0.5 to 2.3 (there, the old API stack). It imports
nothing of rllib_compat: an old Ray's dependencies can't be installed beside today's.
"""
import argparse
import importlib
import inspect
import json
import os
import shutil
import sys
import tempfile
import traceback
from collections import OrderedDict

QUIET = {
    "CUDA_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
os.environ.update(QUIET)  # before Ray and TensorFlow read them

import numpy as np  # noqa: E402
import ray  # noqa: E402
from ray.tune.logger import UnifiedLogger  # noqa: E402
from ray.tune.registry import register_env  # noqa: E402

RAY = tuple(int(part) for part in ray.__version__.split(".")[:3])
if RAY >= (2, 3, 0):
    import gymnasium as gym
else:
    import gym
try:
    from ray.rllib.env.multi_agent_env import MultiAgentEnv
except ImportError:
    from ray.rllib.env import MultiAgentEnv

SAMPLES = 16
EPISODE = 20


# What is trained ---------------------------------------------------------------------------------


def single(act=("discrete", 3), obs=5, share=False, observation_filter="NoFilter", **model):
    """A case with one policy: its spaces, whether both heads share layers, and its model."""
    return {
        "env": "museum-tiny",
        "env_config": {"obs": obs, "act": list(act)},
        "share": share,
        "observation_filter": observation_filter,
        # Said out loud, as Ray 0.5 keeps what the case before it wanted.
        "model": dict({"free_log_std": False}, **model),
    }


def team(**policies):
    """A case with several policies, each of its own spaces and its own model."""
    return {
        "env": "museum-team",
        "env_config": {},
        "share": False,
        "observation_filter": "NoFilter",
        "model": {"fcnet_hiddens": [10], "fcnet_activation": "tanh"},
        "policies": policies,
    }


# name of a policy: (size of its observation, its action, what its config has of its own)
TEAM = {
    "coach": (3, ("discrete", 4), {}),
    "keeper": (6, ("box", 3), {"model": {"fcnet_hiddens": [14, 6], "fcnet_activation": "relu"}}),
    "runner": (4, ("discrete", 2), {"gamma": 0.9, "lr": 0.002}),
}
AGENTS = {"coach": "coach", "keeper": "keeper", "runner_left": "runner", "runner_right": "runner"}

CASES = {
    "hiddens24x16": single(fcnet_hiddens=[24, 16], fcnet_activation="relu"),
    "onelayer-tanh": single(fcnet_hiddens=[20], fcnet_activation="tanh", obs=7),
    "threelayers-elu": single(fcnet_hiddens=[16, 12, 8], fcnet_activation="elu"),
    "linear": single(fcnet_hiddens=[12, 9], fcnet_activation="linear"),
    "swish": single(fcnet_hiddens=[18, 10], fcnet_activation="swish"),
    "curiosity": dict(
        single(fcnet_hiddens=[12], fcnet_activation="tanh"),
        config={
            "exploration_config": {
                "type": "Curiosity",
                "feature_dim": 6,
                "feature_net_config": {"fcnet_hiddens": [8], "fcnet_activation": "relu"},
                "inverse_net_hiddens": [7],
                "forward_net_hiddens": [9],
                "sub_exploration": {"type": "StochasticSampling"},
            }
        },
    ),
    "share-tanh": single(share=True, fcnet_hiddens=[24, 16], fcnet_activation="tanh"),
    "share-onelayer-relu": single(share=True, fcnet_hiddens=[11], fcnet_activation="relu", obs=3),
    "box3": single(act=("box", 3), fcnet_hiddens=[24, 16], fcnet_activation="tanh"),
    "box3-share": single(act=("box", 3), share=True, fcnet_hiddens=[13, 17],
                         fcnet_activation="relu"),
    "box3-freelogstd": single(act=("box", 3), fcnet_hiddens=[16, 12, 8], fcnet_activation="relu",
                              free_log_std=True),
    "meanstd24x16": single(observation_filter="MeanStdFilter", fcnet_hiddens=[24, 16],
                           fcnet_activation="relu"),
    "meanstd-box3-share": single(act=("box", 3), share=True, observation_filter="MeanStdFilter",
                                 fcnet_hiddens=[15], fcnet_activation="tanh"),
    "threepolicies": team(**TEAM),
    # Ray 0.7.5 and 0.7.6 made dense layers of it.
    "images": single(obs="image", conv_filters=[[4, [4, 4], 2], [8, [3, 3], 2], [12, [3, 3], 1]],
                     conv_activation="relu", fcnet_hiddens=[12]),
    # Kernels that are not square, and a stride beyond a kernel's width.
    "images-share-tanh": single(obs="image", share=True, conv_activation="tanh", act=("box", 2),
                                conv_filters=[[6, [3, 2], 2], [5, [2, 2], 3], [7, [2, 2], 1]]),
    "images-post": single(obs="image", post_fcnet_hiddens=[9, 6], post_fcnet_activation="tanh",
                          conv_filters=[[4, [4, 4], 2], [8, [3, 3], 2], [12, [3, 3], 1]]),
    "parts": single(obs="parts", conv_filters=[[4, [4, 4], 2], [5, [5, 5], 1]],
                    fcnet_hiddens=[7], fcnet_activation="tanh", post_fcnet_hiddens=[9]),
    # An image of 2 x 2 at the end, which TensorFlow does not take.
    "parts-wide": single(obs="parts", conv_filters=[[4, [4, 4], 2], [5, [3, 3], 2]],
                         fcnet_hiddens=[7, 6], fcnet_activation="relu"),
}

# Values and the names they had, newest first. The first name that the installed Ray knows is
# used; a setting that it does not have at all is left out.
SETTINGS = [
    (0, ("num_workers",)),
    (0.001, ("lr",)),
    (11, ("seed",)),
    (200, ("train_batch_size",)),
    (100, ("rollout_fragment_length", "sample_batch_size")),
    (50, ("sgd_minibatch_size",)),
    (3, ("num_sgd_iter",)),
    (True, ("simple_optimizer",)),  # builds its graph much faster
    (0, ("min_time_s_per_iteration", "min_time_s_per_reporting", "min_iter_time_s")),
    (True, ("disable_env_checking",)),
    (False, ("_enable_learner_api",)),
    (False, ("_enable_rl_module_api",)),
]
FRAMEWORKS = {
    "tf": [("tf", ("framework",)), (False, ("use_pytorch",))],
    "tf2": [("tf2" if RAY >= (1, 1, 0) else "tfe", ("framework",)), (True, ("eager_tracing",))],
    "torch": [("torch", ("framework",)), (True, ("use_pytorch",))],
}
# How an error says that a Ray is too old for a case.
NOT_THERE_YET = ("Unknown activation", "has no attribute 'linear'", "several policies")


# The environments --------------------------------------------------------------------------------


def box(size, bound):
    return gym.spaces.Box(-bound, bound, shape=(size,), dtype=np.float32)


def observation_space(obs):
    """Vectors of a size, images, or an image among other parts."""
    image = gym.spaces.Box(0, 255, shape=(10, 10, 3), dtype=np.uint8)
    if obs == "image":
        return image
    if obs == "parts":
        return gym.spaces.Dict({"speed": box(3, 2.0), "camera": image, "arm": box(2, 2.0)})
    return box(obs, 2.0)


def sample(rng, space):
    """An observation of one of these spaces."""
    if isinstance(space, gym.spaces.Dict):
        return OrderedDict((name, sample(rng, part)) for name, part in space.spaces.items())
    if len(space.shape) == 3:
        return rng.randint(0, 256, space.shape).astype(np.uint8)
    return observe(rng, space.shape[0])


def flat(space, observation):
    """What RLlib's preprocessors make of it: parts one after the other."""
    if isinstance(space, gym.spaces.Dict):
        parts = [flat(part, observation[name]) for name, part in space.spaces.items()]
        return np.concatenate([np.ravel(part) for part in parts]).astype(np.float32)
    return observation


def action_space(kind, size):
    return gym.spaces.Discrete(size) if kind == "discrete" else box(size, 1.0)


def observe(rng, size):
    """An observation whose entries differ in scale, so that a filter has something to do."""
    return np.clip(rng.normal(0.2, 0.5, size) * np.linspace(0.3, 1.5, size), -2, 2).astype(
        np.float32)


class Tiny(gym.Env):
    """Random observations; the reward likes the first action."""

    def __init__(self, config=None):
        config = config or {"obs": 5, "act": ["discrete", 3]}
        self.observation_space = observation_space(config["obs"])
        self.action_space = action_space(*config["act"])
        self.rng = np.random.RandomState(7)
        self.steps = 0

    def observation(self):
        return sample(self.rng, self.observation_space)

    def reset(self, **_):
        self.steps = 0
        return (self.observation(), {}) if RAY >= (2, 3, 0) else self.observation()

    def step(self, action):
        self.steps += 1
        done = self.steps >= EPISODE
        ends = (done, False) if RAY >= (2, 3, 0) else (done,)
        return (self.observation(), float(np.ravel(action)[0] == 0)) + ends + ({},)


class Team(MultiAgentEnv):
    """Four agents of three kinds, all of them there at every step."""

    def __init__(self, config=None):
        super().__init__()
        self._agent_ids = set(AGENTS)  # asked for since 1.10
        self.rng = np.random.RandomState(7)
        self.steps = 0

    def seed(self, seed=None):
        return [seed]  # Ray 0.8 insists

    def of_all(self, value):
        return {agent: value for agent in AGENTS}

    def observation(self):
        return {agent: observe(self.rng, TEAM[policy][0]) for agent, policy in AGENTS.items()}

    def reset(self, **_):
        self.steps = 0
        seen = self.observation()
        return (seen, self.of_all({})) if RAY >= (2, 3, 0) else seen

    def step(self, actions):
        self.steps += 1
        done = dict(self.of_all(self.steps >= EPISODE), __all__=self.steps >= EPISODE)
        ends = (done, dict(self.of_all(False), __all__=False)) if RAY >= (2, 3, 0) else (done,)
        return (self.observation(), self.of_all(1.0)) + ends + (self.of_all({}),)


def policy_of(agent_id, *_, **__):
    """The mapping that goes into the checkpoint, by value."""
    return agent_id.split("_")[0]


# The installed Ray -------------------------------------------------------------------------------


def ppo():
    """PPO's class, which moved twice."""
    for module, name in [
        ("ray.rllib.algorithms.ppo", "PPO"),
        ("ray.rllib.agents.ppo", "PPOTrainer"),
        ("ray.rllib.agents.ppo", "PPOAgent"),
    ]:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError("no PPO in Ray " + ray.__version__)


def default_config(cls):
    if hasattr(cls, "_default_config"):
        return cls._default_config
    config = cls.get_default_config()
    return config if isinstance(config, dict) else config.to_dict()


def config_of(case, framework, default):
    """A case's config in the words of the installed Ray."""
    config = {"env_config": case["env_config"], "observation_filter": case["observation_filter"],
              "model": dict(case["model"])}
    config.update(case.get("config", {}))
    for value, names in SETTINGS + FRAMEWORKS[framework]:
        name = next((name for name in names if name in default), None)
        if name:
            config[name] = value
    # A key of PPO itself until 1.0; later a key of the model.
    home = config if isinstance(default.get("vf_share_layers"), bool) else config["model"]
    home["vf_share_layers"] = case["share"]
    if "policies" in case:
        if RAY < (0, 6, 0):
            raise NotImplementedError("several policies: Ray 0.5 wants their class")
        if RAY < (0, 7, 0):
            config["simple_optimizer"] = False  # looks for one policy's "kl" there
        config["multiagent"] = {
            "policies" if RAY >= (0, 7, 0) else "policy_graphs": {
                name: (None, box(obs, 2.0), action_space(*act), own)
                for name, (obs, act, own) in case["policies"].items()
            },
            "policy_mapping_fn": policy_of,
            "policies_to_train": ["keeper", "runner"],
        }
    return config


def start_ray():
    wanted = {
        "num_cpus": 2,
        "object_store_memory": 200 * 1024 * 1024,
        "redis_max_memory": 100 * 1024 * 1024,
        "_redis_max_memory": 100 * 1024 * 1024,
        "include_webui": False,
        "include_dashboard": False,
        "_node_ip_address": "127.0.0.1",
        "logging_level": "ERROR",
    }
    known = inspect.signature(ray.init).parameters
    ray.init(**{name: value for name, value in wanted.items() if name in known})


def local_worker(trainer):
    if hasattr(trainer, "workers"):
        return trainer.workers.local_worker()
    return trainer.local_evaluator


# What is recorded --------------------------------------------------------------------------------


def weights(policy):
    """[name, shape, dtype] of every weight, in the order in which the checkpoint has them."""
    held = policy.get_weights()
    if isinstance(held, dict):
        named = [(name, np.asarray(array)) for name, array in held.items()]
    elif isinstance(held, list):  # tf2: arrays without names
        named = [(var.name, array) for var, array in zip(policy.model.variables(), held)]
    else:  # TensorFlow until 0.7: one flat vector
        variables = policy._variables.variables
        named = [(name, np.empty(var.shape.as_list(), np.float32))
                 for name, var in variables.items()]
    return [[name, list(array.shape), str(array.dtype)] for name, array in named]


def filtered(worker, policy_id, policy, observations):
    """Observations as the network gets them. Since 2.3 the filter in use is a connector's."""
    connectors = getattr(getattr(policy, "agent_connectors", None), "connectors", [])
    filters = [connector.filter for connector in connectors if hasattr(connector, "filter")]
    use = filters[0] if filters else worker.filters[policy_id]
    return np.stack([np.asarray(use(row, update=False), np.float32) for row in observations])


def outputs(policy, net_in):
    """One forward pass: actions, logits and values."""
    known = inspect.signature(policy.compute_actions).parameters
    quiet = {"explore": False} if "explore" in known else {}
    actions, _, extra = policy.compute_actions(net_in, **quiet)
    logits = next(extra[name] for name in ("action_dist_inputs", "behaviour_logits", "logits")
                  if name in extra)
    return {"action": actions, "out/action_dist_inputs": logits, "out/vf_preds": extra["vf_preds"]}


def record(worker):
    """What every policy sees and says: the arrays of expected.npz and `policies` of case.json."""
    arrays, policies = {}, {}
    rng = np.random.RandomState(1000)
    for policy_id in sorted(worker.policy_map.keys()):
        policy = worker.policy_map[policy_id]
        space = getattr(policy.observation_space, "original_space", policy.observation_space)
        observations = [sample(rng, space) for _ in range(SAMPLES)]
        flattened = np.stack([flat(space, observation) for observation in observations])
        net_in = filtered(worker, policy_id, policy, flattened)
        found = dict(outputs(policy, net_in), net_in=net_in)
        if isinstance(space, gym.spaces.Dict):
            for part in space.spaces:
                found["obs/" + part] = np.stack([seen[part] for seen in observations])
        else:
            found["obs"] = flattened
        for name, array in found.items():
            arrays[policy_id + "/" + name] = np.asarray(array)
        policies[policy_id] = {
            "observation_space": told(space),
            "action_space": str(policy.action_space),
            "policy_class": type(policy).__module__ + "." + type(policy).__name__,
            "weights": weights(policy),
        }
    return arrays, policies


def told(space):
    """A space in words, with one number for each bound."""
    if isinstance(space, gym.spaces.Dict):
        return "Dict(%s)" % ", ".join("'%s': %s" % (name, told(part))
                                      for name, part in space.spaces.items())
    if isinstance(space, gym.spaces.Box) and len(space.shape) > 1:
        return "Box(%s, %s, %s, %s)" % (space.low.min(), space.high.max(), space.shape, space.dtype)
    return str(space)


def plain(value):
    """A config as JSON has it; what JSON has no word for is told by its `repr`."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return getattr(value, "__name__", None) or repr(value)


def versions():
    names = ["numpy", gym.__name__, "tensorflow", "torch", "cloudpickle"]
    found = {name: sys.modules[name].__version__ for name in names if name in sys.modules}
    return dict(found, ray=ray.__version__, python=sys.version.split()[0])


def make(name, framework, out):
    """One case of this script; it says what came of it."""
    case, cls = CASES[name], ppo()
    final = os.path.join(out, ray.__version__, "ppo-%s-%s" % (framework, name))
    if os.path.exists(final):
        return "is there"

    def recorded(trainer):
        arrays, policies = record(local_worker(trainer))
        return {"expected": arrays}, {"policies": policies}

    train(cls, config_of(case, framework, default_config(cls)), case["env"], recorded, final,
          algo="PPO", framework=framework, stack="old", variant=name)
    return "done"


def train(cls, config, env, record, final, told_by="case.json", **about):
    """Train a case for two iterations, save it and record it.

    `record(trainer)` gives arrays by file and by name, and what else `told_by` has to say. The
    case's folder appears only when it is whole.
    """
    scratch = tempfile.mkdtemp()
    whole, logs = os.path.join(scratch, "whole"), os.path.join(scratch, "logs")
    checkpoint = os.path.join(whole, "ckpt")
    os.makedirs(checkpoint)  # Ray 0.5 does not make it
    os.makedirs(logs)
    trainer = cls(config=config, env=env,
                  logger_creator=lambda config: UnifiedLogger(config, logs))
    try:
        for _ in range(2):
            result = trainer.train()
        saved = trainer.save(checkpoint)
        if not isinstance(saved, str):  # since 2.7
            saved = saved.checkpoint.path
        arrays, found = record(trainer)
    finally:
        trainer.stop()
    for file in ("params.json", "params.pkl"):
        if os.path.exists(os.path.join(logs, file)):
            shutil.copy(os.path.join(logs, file), whole)
    steps = result.get("timesteps_total")
    finish(whole, final, arrays, told_by, **dict(
        about,
        env=env,
        checkpoint=os.path.relpath(saved, whole),
        iteration=result["training_iteration"],
        timesteps_total=None if steps is None else int(steps),  # R2D2's are numpy's
        user_config=plain(config),
        **found
    ))


def finish(whole, final, arrays, told_by="case.json", **about):
    """Write what was recorded beside a checkpoint, and move the folder to its place."""
    whole, final = str(whole), str(final)
    for name, held in arrays.items():
        np.savez_compressed(os.path.join(whole, name + ".npz"), **held)
    with open(os.path.join(whole, told_by), "w") as file:
        json.dump(dict(about, versions=versions()), file, indent=1, sort_keys=True)
    os.makedirs(os.path.dirname(final), exist_ok=True)
    shutil.rmtree(final, ignore_errors=True)
    shutil.move(whole, final)
    shutil.rmtree(os.path.dirname(whole), ignore_errors=True)


def run(about, cases, make, envs):
    """The command line of a generator whose cases are its own: OUT [--cases NAME ...].

    `make(name, out)` makes a case, in the environments of `envs`: name -> class.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--cases", nargs="+", choices=sorted(cases), default=list(cases))
    args = parser.parse_args()
    start_ray()
    for name, env in envs.items():
        register_env(name, lambda config, env=env: env(config))  # until 1.0 a class won't do
    for name in args.cases:
        make(name, args.out)
    ray.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--framework", choices=sorted(FRAMEWORKS), required=True)
    parser.add_argument("--cases", nargs="+", choices=sorted(CASES), default=list(CASES))
    args = parser.parse_args()
    start_ray()
    register_env("museum-tiny", lambda config: Tiny(config))
    register_env("museum-team", lambda config: Team(config))
    failed = 0
    for name in args.cases:
        try:
            said = make(name, args.framework, args.out)
        except Exception as error:  # the next case may well succeed on this Ray
            said = "not on this Ray: %s" % error
            if not any(words in str(error) for words in NOT_THERE_YET):
                failed += 1
                said = "FAILED: %r" % error
                traceback.print_exc()
        print("%s ppo-%s-%s: %s" % (ray.__version__, args.framework, name, said), flush=True)
    ray.shutdown()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
