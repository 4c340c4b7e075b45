"""What training loops are made of here, as `record_loops.py` finds it in an old Ray."""

import json
from pathlib import Path

import pytest
import ray
from ray.rllib.policy.policy import Policy

import rllib_compat as compat
from rllib_compat import gym, legacy, tune
from rllib_compat.legacy import lookup
from tests.legacy.api import running_loops, template_hooks, training_loops

legacy.deactivate()  # to import it is to activate it

RECORDED = Path(__file__).with_name("loops")
#: What of a loop may have more here.
NAMES = ("keys", "info", "columns", "stats")
#: What Tune no longer tells of a function's trial.
GONE = {"episodes_total", "experiment_id", "timesteps_since_restore", "warmup_time"}
#: Loops that need more than one process.
WITH_PROCESSES = {
    "a_plan_of_gradients",
    "a_plan_of_workers",
    "workers_of_a_trainer",
    "a_tune_function",
    "a_tune_function_with_checkpoints",
}


def recorded(names, on_a_push):
    """What was recorded of some loops: Ray, name and what it told.

    Args:
        names: Whether a loop is meant, by its name.
        on_a_push: Those of `Ray-name` that are not left to the nightly run.
    """
    found = []
    for file in sorted(RECORDED.glob("running-*.json")):
        release = file.stem.partition("-")[2]
        for name, told in json.loads(file.read_text()).items():
            case = f"{release}-{name}"
            marks = () if case in on_a_push else pytest.mark.nightly
            if told is not None and names(name):
                found.append(pytest.param(release, name, told, id=case, marks=marks))
    return found


def check(told, found):
    """Asserts that a loop gave what it gave in an old Ray."""
    for part, value in told.items():
        if isinstance(value, dict):  # what Tune told as None is not there
            value = {name: one for name, one in value.items() if one is not None}
        if part == "counters":  # there are more here, as there are numbers
            found[part] = {name: found[part].get(name) for name in value}
        if part == "numbers" and isinstance(value[0], dict):
            found[part] = [{n: one.get(n) for n in value[0]} for one in found[part]]
        if part in NAMES:
            missing = set(value) - set(found[part])
            missing -= {"dones"} if "terminateds" in found[part] else set()  # it answers to it
            missing -= GONE if "learned" in told and "status" in told else set()
            assert not missing, f"{part}: {missing} among {sorted(found[part])}"
        else:
            assert found[part] == value, f"{part}: {found[part]}, and not {value}"


def play(release, name, folder):
    """Runs a loop here."""
    line = running_loops.make_env(gym)
    tune.register_env("line", line)
    pair = running_loops.make_pair(old("env.multi_agent_env", "MultiAgentEnv"), line)
    tune.register_env("pair", pair)
    return dict(running_loops.play(Rays(release, line, folder), [name]))[name]


def call_hooks(release, hooks):
    """Trains a trainer with these hooks, and returns their calls."""
    line = running_loops.make_env(gym)
    tune.register_env("line", line)
    rays = Rays(release, line, None)
    rays.trainer_hooks = hooks
    return template_hooks.trainer_hooks(rays)


def old(module, name):
    """A name of old Rays."""
    return lookup(f"ray.rllib.{module}", name)


class Rays:
    """What loops are made of here, as in an old Ray."""

    function_checkpoints = tune.checkpoint_dir, tune.report
    adds_policies = True
    capacity = "buffer_size"
    Policy = Policy
    get, put = staticmethod(ray.get), staticmethod(ray.put)

    def __init__(self, release, line, folder):
        self.release, self.make_env, self.folder = release, line, folder
        self.Pushing = training_loops.make_policy(Policy)
        self.RandomPolicy = old("examples.policy.random_policy", "RandomPolicy")
        self.SampleBatch = old("policy.sample_batch", "SampleBatch")
        self.collect_metrics = old("evaluation.metrics", "collect_metrics")
        of_0_8 = {"use_pytorch": True, "use_exec_api": True}
        self.settings = {"framework": "torch"} if release > "1" else of_0_8

    @staticmethod
    def execution(name):
        return getattr(compat.execution, name)

    def build_trainer(self, name, policy, plan=None, **more):
        if self.release == "1.13.0":  # which had no template

            class Planned(old("agents.trainer", "Trainer")):
                execution_plan = staticmethod(plan)

                def get_default_policy_class(self, config):
                    return policy

            return Planned
        config = old("agents.trainer", "with_common_config")({})
        build = old("agents.trainer_template", "build_trainer")
        more["execution_plan"] = plan
        return build(name=name, default_policy=policy, default_config=config, **more)

    def trainer(self, algorithm, config):
        return compat.Trainer(config=config, algorithm=algorithm, legacy_ray=self.release)

    def make_workers(self, policy, fragment):
        config = dict(old("agents.trainer", "COMMON_CONFIG"))
        config |= {"rollout_fragment_length": fragment, "num_workers": 0, **self.settings}
        return old("evaluation.worker_set", "WorkerSet")(
            lambda _: self.make_env(), policy_class=policy, trainer_config=config
        )

    def tune(self, function, **more):
        return tune.run(function, verbose=0, local_dir=str(self.folder), **more).trials[0]

    @staticmethod
    def last_checkpoint(trial):
        return trial.checkpoint.path
