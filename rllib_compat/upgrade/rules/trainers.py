"""Trainers, `tune.run` and callbacks: what has to be rewritten for the installed Ray alone.

Each place gets a note of what takes its place; none of it is rewritten by a program yet.
"""

from __future__ import annotations

import libcst as cst

from rllib_compat import registry
from rllib_compat.upgrade.rule import Rule, Target, text_of

_ACTING = "act with the module: algo.get_module(id).forward_inference(batch)"
#: Methods and attributes of trainers that are named here wherever they occur.
METHODS = {
    "compute_action": _ACTING,
    "compute_actions": _ACTING,
    "compute_single_action": _ACTING,
    "get_policy": "it is get_module(id), an RLModule",
    "local_worker": "it is algo.env_runner",
    "foreach_worker": "it is algo.env_runner_group.foreach_env_runner(f)",
    "remote_workers": "use algo.env_runner_group.foreach_env_runner(f)",
    "export_policy_model": "save the module: algo.get_module(id).save_to_path(folder)",
}
#: Names of Tune, by where they were imported from.
TUNE = {
    "ray.tune.run": "it is Tuner(name, param_space=config, run_config=RunConfig(stop=…)).fit()",
    "ray.tune.run_experiments": "run a Tuner for each experiment",
}
CALLBACKS = ("ray.rllib.callbacks.callbacks.RLlibCallback", "DefaultCallbacks")
_CALLBACKS = (
    "methods are called with episode, env_runner, metrics_logger, env, env_index and rl_module; "
    "episode.user_data is custom_data, and metrics_logger.log_value takes custom metrics"
)


class Trainers(Rule):
    """Reports what has to be rewritten by hand."""

    id = "trainers"
    targets = (Target.NATIVE,)

    def visit_Call(self, node: cst.Call) -> None:
        """Looks at what is called."""
        for name in self.names(node.func):
            last = name.rpartition(".")[2]
            if last in registry.class_names() and name.startswith("ray.rllib.") and node.args:
                self.todo(
                    node,
                    f"the config is a chain of {last.removesuffix('Trainer')}Config() calls, ended "
                    "by build_algo(): `rllib-compat config FILE:NAME` prints it",
                )
            if name in TUNE:
                self.todo(node, f"{last}: {TUNE[name]}")
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in METHODS:
            method = str(node.func.attr.value)
            self.todo(node, f"{method}: {METHODS[method]}")

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """Looks at callbacks."""
        named = {name for base in node.bases for name in self.names(base.value)}
        callbacks = any(name.endswith(CALLBACKS) for name in named)
        if callbacks and "metrics_logger" not in text_of(node):
            self.todo(node, _CALLBACKS)
