"""Records the hooks of an old Ray's templates: `record_hooks.py OUT.json`. No Ray runs."""

import inspect
import json
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

import gym
import numpy
import ray
import running_loops
import template_hooks
import torch
import training_loops
from ray.rllib.agents import registry
from ray.rllib.agents.trainer import with_common_config
from ray.rllib.models.catalog import MODEL_DEFAULTS
from ray.rllib.policy.policy import Policy
from ray.rllib.policy.sample_batch import SampleBatch
from ray.tune.registry import register_env

RAY = tuple(int(part) for part in ray.__version__.split("."))
#: What replaces a part of the trainer, and is called for nothing else.
REPLACE = ("collect_metrics_fn", "execution_plan", "make_policy_optimizer", "make_workers")
OTHERS = ("default_config", "default_policy", "get_initial_state", "get_policy_class", "mixins")


def parameters(function):
    return [name for name in inspect.signature(function).parameters if name != "name"]


def default_config(name):
    find = getattr(registry, "get_trainer_class", None) or registry.get_agent_class
    found = find(name)
    return found.get_default_config() if RAY > (1, 10) else found._default_config


def main(out):
    # No worker is remote: what is put is taken out by the same process.
    ray.put, ray.get = (lambda value: value), (lambda value, **_: value)
    line = running_loops.make_env(gym)
    register_env("line", lambda context: line(context))
    if RAY < (1, 3):
        from ray.rllib.policy.torch_policy_template import build_torch_policy as build_policy
    else:
        from ray.rllib.policy.policy_template import build_policy_class

        def build_policy(**more):
            return build_policy_class(framework="torch", **more)

    template = build_policy if RAY < (1, 3) else build_policy_class
    told = SimpleNamespace(
        MODEL_DEFAULTS=MODEL_DEFAULTS,
        Pushing=training_loops.make_policy(Policy),
        SampleBatch=SampleBatch,
        build_policy=build_policy,
        default_config=default_config,
        make_env=line,
        numpy=numpy,
        policy_hooks=parameters(template),
        settings={"use_pytorch": True, "use_exec_api": True}
        if RAY < (1,)
        else {"framework": "torch"},
        torch=torch,
    )
    found = {"policy_hooks": template_hooks.policy_hooks(told)}
    if RAY < (1, 13):
        from ray.rllib.agents.trainer_template import build_trainer

        names = parameters(build_trainer)
        told.trainer_hooks = [name for name in names if name not in REPLACE + OTHERS]
        if RAY < (1,):  # with an execution plan, nothing calls them
            told.settings["use_exec_api"] = False

        def build(name, policy, **more):
            config = with_common_config({})
            return build_trainer(name=name, default_policy=policy, default_config=config, **more)

        told.build_trainer = build
        found["trainer_hooks"] = template_hooks.trainer_hooks(told)
        found["trainer_hooks"]["given"] = told.trainer_hooks
    found["policy_hooks"]["given"] = told.policy_hooks
    Path(out).write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
