"""Calls of Python that advice shows: what is called is there, and takes the arguments shown."""

import ast
import inspect
import re

import rllib_compat as compat
from rllib_compat.registry import keys
from rllib_compat.trainer.subclasses import derive
from tests.unit.test_advice import ADVICE

#: Names that are calls of spaces in texts of spaces, which `neutral.spaces` reads.
SPACES = ("Box", "Dict", "Discrete", "MultiDiscrete", "Tuple")


def calls_in(text):
    """The calls that a text shows; `...` stands where it shows … or where it computes something."""
    for begin in re.finditer(r"(?<![\w.{])[A-Za-z_][\w.]*\(", text):
        ends = [end.end() for end in re.finditer(r"\)", text) if end.end() > begin.end()]
        codes = [text[begin.start() : end] for end in [*ends, *[begin.end()]]]
        code = next((c for c in codes if c.count("(") == c.count(")")), "")
        code = code.replace("{…, ", "{").replace("({}=", "(").replace("…", "...")
        code = re.sub(r"=(?=[,)])", "=...", code)
        if code and not code.startswith(SPACES):
            yield from (n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Call))


SHOWN = [(place, call) for place, text in ADVICE for call in calls_in(text)]


#: What old clients call inside their own Ray.
OF_OLD_RAYS = "PolicyClient"


def owners():
    """The first name of a call → the classes and modules that it may be of; "": of a name alone."""
    import gymnasium
    import ray.tune
    import torch
    from ray.rllib.algorithms.dqn import DQNConfig
    from ray.rllib.connectors.env_to_module import FlattenObservations
    from ray.rllib.core.learner.torch.torch_learner import TorchLearner
    from ray.rllib.core.rl_module.rl_module import RLModule, RLModuleSpec
    from ray.rllib.env.external_env import ExternalEnv
    from ray.rllib.env.multi_agent_env import MultiAgentEnv
    from ray.rllib.models.preprocessors import Preprocessor
    from ray.rllib.policy.torch_policy_v2 import TorchPolicyV2

    from rllib_compat.algorithms.ddpg import DDPGConfig
    from rllib_compat.artifacts import SimulatorFolders
    from rllib_compat.legacy.policy import Policy as RaysPolicy
    from rllib_compat.legacy.rllib_api import TaskSettableEnv
    from rllib_compat.policy import Policy
    from rllib_compat.runtime.episodes import LegacyEpisode
    from rllib_compat.runtime.external.server import PolicyServerInput
    from rllib_compat.trainer.rollout_worker import RolloutWorker, WorkerSet
    from rllib_compat.trainer.trainer import Trainer

    class PPOTrainer(Trainer):
        workers = WorkerSet
        with_updates = derive  # `Trainer.with_updates` takes what it takes

    classes = (RLModule, RLModuleSpec, PolicyServerInput, RolloutWorker, SimulatorFolders)
    found = {kind.__name__: [kind] for kind in (*classes, PPOTrainer)}
    found |= {"FlattenObservations": [FlattenObservations], "Policy": [RaysPolicy]}
    found |= {"config": [DQNConfig, DDPGConfig], "AlgorithmConfig": [DQNConfig, DDPGConfig]}
    found |= {"env": [MultiAgentEnv], "action_space": [gymnasium.Space], "trainer": [PPOTrainer]}
    found |= {"policy": [Policy, TorchPolicyV2], "algorithm": [DQNConfig().algo_class]}
    found |= {"rllib_compat": [compat], "ray": [ray], "tune": [ray.tune], "torch": [torch]}
    more = [TaskSettableEnv, TorchLearner, LegacyEpisode, ExternalEnv, Preprocessor]
    return found | {"": [*(owner for owners in found.values() for owner in owners), *more]}


def can_be_made(call, known):
    """Whether there is what a call names, and takes the arguments that it shows."""
    first, *path = ast.unparse(call.func).split(".")
    if path or first in known:
        found = known[first]
    else:
        found, path = known[""], [first]
    for name in path:
        found = [getattr(owner, name) for owner in found if hasattr(owner, name)]
    found = filter(callable, found)
    given = {word.arg for word in call.keywords if word.arg}
    places = [None] * len(call.args)
    return any(given <= names_of(function) and takes(function, places) for function in found)


def takes(function, places):
    """Whether a function has places for so many arguments."""
    try:
        inspect.signature(function).bind_partial(*places)
    except TypeError:
        return False
    return True


def names_of(function):
    """The arguments of a function; of one that takes more, those of its namesakes in bases."""
    function = getattr(function, "func", function)  # of a partial
    function = function.__init__ if inspect.isclass(function) else function
    names = inspect.signature(function).parameters
    if not any(part.kind is part.VAR_KEYWORD for part in names.values()):
        return set(names)
    if function is compat.load:  # keys of the old config
        return {*names, *(key for _, key in keys.every_key())}
    module, owner = inspect.getmodule(function), function.__qualname__.partition(".")[0]
    bases = inspect.getmro(vars(module)[owner])[1:] if "." in function.__qualname__ else ()
    above = [vars(base).get(function.__name__) for base in bases if base is not object]
    return {*names}.union(*(names_of(method) for method in above if method))


def test_calls_that_advice_shows_can_be_made():
    known = owners()
    shown = {(place, ast.unparse(call)): call for place, call in SHOWN}
    assert len(shown) > 60
    wrong = [
        which
        for which, call in shown.items()
        if not ast.unparse(call.func).startswith(OF_OLD_RAYS) and not can_be_made(call, known)
    ]
    assert wrong == []
    for text in (
        "config.training(nothing=1)",
        "PPOTrainer.with_updates(nothing=1)",
        "rllib_compat.load(OLD, nothing=1)",
        "rllib_compat.load(OLD, NEW)",
        "trainer.nothing()",
        "nothing()",
    ):
        assert not can_be_made(next(calls_in(text)), known)
