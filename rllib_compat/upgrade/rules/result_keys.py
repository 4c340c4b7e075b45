"""Keys of results: `episode_reward_mean` is `env_runners/episode_return_mean`."""

from __future__ import annotations

from typing import Any

import libcst as cst

from rllib_compat.upgrade.rule import Rule, Target, string_of

#: A key of old results → where it is today, level by level.
KEYS = {
    "episode_len_mean": ("env_runners", "episode_len_mean"),
    "episode_reward_max": ("env_runners", "episode_return_max"),
    "episode_reward_mean": ("env_runners", "episode_return_mean"),
    "episode_reward_min": ("env_runners", "episode_return_min"),
    "episodes_this_iter": ("env_runners", "num_episodes"),
    "episodes_total": ("env_runners", "num_episodes_lifetime"),
    "policy_reward_mean": ("env_runners", "module_episode_returns_mean"),
    "timesteps_total": ("num_env_steps_sampled_lifetime",),
}

#: Keys that are nowhere, and what there is.
GONE = {
    "custom_metrics": "what metrics_logger logged is below env_runners, by its own name",
    "hist_stats": "there are no histories of episodes; log them with metrics_logger",
    "sampler_perf": "there are timers of their own in the result",
}


class ResultKeys(Rule):
    """Writes today's keys where results are read, and where Tune is given one."""

    id = "result-keys"
    targets = (Target.NATIVE,)

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        """Rewrites `result["episode_reward_mean"]`."""
        key = _key(original_node)
        if key in GONE:
            self.todo(original_node, f"results have no {key!r}: {GONE[key]}")
        if key not in KEYS:
            return updated_node
        self.changed(original_node, f"{key} is {'/'.join(KEYS[key])}")
        new: Any = updated_node.value
        for part in KEYS[key]:
            index = cst.SubscriptElement(
                cst.Index(quoted_as(original_node.slice[0].slice.value, part))
            )
            new = cst.Subscript(new, [index])
        return new

    def leave_DictElement(
        self, original_node: cst.DictElement, updated_node: cst.DictElement
    ) -> cst.DictElement:
        """Rewrites the keys of stop criteria."""
        new = self._path(original_node.key)
        return updated_node.with_changes(key=new) if new else updated_node

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """Rewrites metrics that are given by name."""
        new = self._path(original_node.value)
        return updated_node.with_changes(value=new) if new else updated_node

    def _path(self, node: cst.BaseExpression) -> cst.SimpleString | None:
        key = string_of(node)
        if key not in KEYS:
            return None
        path = "/".join(KEYS[key])
        self.changed(node, f"{key} is {path}")
        return quoted_as(node, path)


def quoted_as(node: Any, text: str) -> cst.SimpleString:
    """A string in the quotes of another: inside an f-string, they are the ones that can stand."""
    return cst.SimpleString(f"{node.quote}{text}{node.quote}")


def _key(node: cst.Subscript) -> str | None:
    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return None
    return string_of(node.slice[0].slice.value)
