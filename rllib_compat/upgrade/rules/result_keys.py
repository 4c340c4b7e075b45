"""Keys of results: `episode_reward_mean` is `env_runners/episode_return_mean`."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst
from libcst import matchers

from rllib_compat.upgrade.rule import Rule, Target, dotted, string_of, text_of

#: A key of old results → its present keys, level by level.
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

#: Removed keys → what replaces them.
GONE = {
    "custom_metrics": "what metrics_logger logged is below env_runners, by its own name",
    "hist_stats": "there are no histories of episodes; log them with metrics_logger",
    "sampler_perf": "there are timers of their own in the result",
}


#: What makes a data frame, whose columns are keys joined by slashes.
_MAKES_FRAMES = re.compile(r"dataframe|results_df|DataFrame\(|read_csv\(")
_SEVERAL = (cst.List, cst.Tuple, cst.Set)


class ResultKeys(Rule):
    """Writes the present keys where results are read, and where Tune gets one."""

    id = "result-keys"
    targets = (Target.NATIVE,)

    def visit_Module(self, node: cst.Module) -> None:
        """Collects the names of data frames."""
        self._frames: set[str | None] = set()
        self._quote = '"'
        for statement in matchers.findall(node, matchers.Assign() | matchers.For()):
            source: Any = statement.iter if isinstance(statement, cst.For) else statement.value
            if _MAKES_FRAMES.search(text_of(source)):
                for assigned in getattr(statement, "targets", [statement]):
                    parts = getattr(assigned.target, "elements", None)
                    names = [part.value for part in parts] if parts else [assigned.target]
                    self._frames |= {name for name in map(dotted, names) if name}

    def visit_FormattedString(self, node: cst.FormattedString) -> None:
        """Chooses quotes that the f-string may contain."""
        self._quote = "'" if '"' in node.end else '"'

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.FormattedString:
        """Chooses the usual quotes again."""
        del original_node
        self._quote = '"'
        return updated_node

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        """Rewrites `result["episode_reward_mean"]`, and the columns of data frames."""
        key = _key(original_node)
        if key in GONE:
            self.todo(original_node, f"results have no {key!r}: {GONE[key]}")
        if key not in KEYS or self._is_frame(original_node.value):
            pairs = zip(original_node.slice, updated_node.slice, strict=True)
            return updated_node.with_changes(slice=[self._column(*pair) for pair in pairs])
        self.changed(original_node, f"{key} is {'/'.join(KEYS[key])}")
        new: Any = updated_node.value
        for part in KEYS[key]:
            index = cst.SubscriptElement(
                cst.Index(quoted_as(original_node.slice[0].slice.value, part))
            )
            new = cst.Subscript(new, [index])
        return new

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        """Rewrites `df.episode_reward_mean`."""
        key = original_node.attr.value
        if key not in KEYS or not self._is_frame(original_node.value):
            return updated_node
        path = self._path(original_node, key)
        index = cst.SubscriptElement(
            cst.Index(cst.SimpleString(f"{self._quote}{path}{self._quote}"))
        )
        return cst.Subscript(updated_node.value, [index])

    def visit_Assign(self, node: cst.Assign) -> None:
        """Leaves a note at a name for a key, or for several."""
        self._note(node.value)

    def visit_For(self, node: cst.For) -> None:
        """Leaves a note at a loop over keys."""
        self._note(node.iter)

    def leave_DictElement(
        self, original_node: cst.DictElement, updated_node: cst.DictElement
    ) -> cst.DictElement:
        """Rewrites the keys of stop criteria."""
        return updated_node.with_changes(key=self._renamed(original_node.key, updated_node.key))

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """Rewrites metrics that are given by name, one or a list."""
        value = self._renamed(original_node.value, updated_node.value)
        return updated_node.with_changes(value=value)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        """Rewrites `result.get("episode_reward_mean", 0)`, whose argument is a path by now."""
        function, args = original_node.func, original_node.args
        key = string_of(args[0].value) if args else None
        is_get = isinstance(function, cst.Attribute) and function.attr.value == "get"
        if not is_get or key not in KEYS or self._is_frame(function.value):
            return updated_node
        *above, last = (quoted_as(args[0].value, part) for part in KEYS[key])
        inner: Any = updated_node.func
        for part in above:
            given = [cst.Arg(part), cst.Arg(cst.Dict([]))]
            inner = inner.with_changes(value=updated_node.with_changes(func=inner, args=given))
        first = updated_node.args[0].with_changes(value=last)
        return updated_node.with_changes(func=inner, args=[first, *updated_node.args[1:]])

    def _is_frame(self, node: object) -> bool:
        """Whether an expression is a data frame, or a part of one."""
        if _MAKES_FRAMES.search(text_of(node)):
            return True
        while node is not None and dotted(node) not in self._frames:
            node = getattr(node, "func", getattr(node, "value", None))
            node = None if isinstance(node, str) else node
        return node is not None

    def _column(self, original: Any, updated: Any) -> Any:
        """An element of a subscript with paths as keys."""
        if not isinstance(original.slice, cst.Index):
            return updated
        index = self._renamed(original.slice.value, updated.slice.value)
        return updated.with_changes(slice=updated.slice.with_changes(value=index))

    def _renamed(self, original: Any, updated: Any) -> Any:
        """A key, or several, as paths; anything else as it is."""
        if isinstance(original, _SEVERAL):
            pairs = zip(original.elements, updated.elements, strict=True)
            elements = [n.with_changes(value=self._renamed(o.value, n.value)) for o, n in pairs]
            return updated.with_changes(elements=elements)
        key = string_of(original)
        return quoted_as(original, self._path(original, key)) if key in KEYS else updated

    def _note(self, node: cst.BaseExpression) -> None:
        parts = [part.value for part in node.elements] if isinstance(node, _SEVERAL) else [node]
        for key in map(string_of, parts):
            if key in KEYS and len(KEYS[key]) > 1:
                path = "/".join(KEYS[key])
                self.todo(node, f"{key} is {path}: nested in a result, else a path")

    def _path(self, node: cst.CSTNode, key: str) -> str:
        path = "/".join(KEYS[key])
        self.changed(node, f"{key} is {path}")
        return path


def quoted_as(node: Any, text: str) -> cst.SimpleString:
    """A string in the quotes of another: inside an f-string, they are the ones that can stand."""
    return cst.SimpleString(f"{node.quote}{text}{node.quote}")


def _key(node: cst.Subscript) -> str | None:
    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return None
    return string_of(node.slice[0].slice.value)
