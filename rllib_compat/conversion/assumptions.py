"""Lists the settings that the weights do not show, which only a recording can prove.

The proof of a conversion compares the networks that were read and written. If a setting is from the
config, a space or a default, both sides have it, and the proof cannot show whether it is correct.
Such settings are listed beside the proof.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from rllib_compat import registry
from rllib_compat.conversion.compare import HEAD, RECORDED, OutputDifference
from rllib_compat.networks import ModelSettings, Network
from rllib_compat.networks.graph import Step
from rllib_compat.networks.observation_filter import STEP as FILTER
from rllib_compat.networks.read import is_own
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Box


@frozen
class Assumption:
    """A setting that the weights do not show.

    Attributes:
        policy_id: The policy.
        what: The name of the setting.
        value: Its value.
        source: The source of the value.
        proven: Whether outputs that depend on it agree with a recording.
    """

    policy_id: str
    what: str
    value: str
    source: str
    proven: bool = False

    def finding(self) -> Finding:
        """Returns it as a row of a report."""
        proof = (
            "; the recording agrees"
            if self.proven
            else "; the weights do not show it, so it is not proven"
        )
        return Finding.info(
            "assumed",
            Verdict.NOTE,
            f"policies.{self.policy_id}.{self.what}",
            f"assumed: {self.value} ({self.source}){proof}",
        )


@frozen
class _Setting:
    """A setting of a graph's operations that arrays do not show.

    Attributes:
        what: The name of the setting.
        names: Its names in an operation.
        keys: Its keys in a legacy config, in `model` or at the top level.
        ops: The operations that have it; empty: all.
        default_source: The source if the config has no such key.
    """

    what: str
    names: tuple[str, ...]
    keys: tuple[str, ...]
    ops: tuple[str, ...] = ()
    default_source: str = "the default of its Ray"


_SPACE = "the action space"

_SETTINGS = (
    _Setting(
        "activation",
        ("activation",),
        (
            # An algorithm's own settings have precedence over the model's.
            "actor_hidden_activation",
            "critic_hidden_activation",
            "Q_model",
            "q_model_config",
            "policy_model",
            "policy_model_config",
            "fcnet_activation",
            "conv_activation",
            "post_fcnet_activation",
            "head_fcnet_activation",
        ),
    ),
    _Setting("strides and padding", ("stride", "padding"), ("conv_filters",), ("conv",)),
    _Setting("support of the values", ("v_min", "v_max"), ("v_min", "v_max"), ("expectation",)),
    _Setting("bounds of the actions", ("low", "range"), (), ("squash",), _SPACE),
    _Setting(
        "previous actions", ("parts",), ("lstm_use_prev_action",), ("one_hot",), "the action space"
    ),
    _Setting("gates", ("gates",), ("framework", "use_pytorch"), ("lstm",)),
    _Setting("bounds of log std", ("low", "high"), (), ("softplus_log_std",)),
    _Setting("bounds of log std", ("limit",), (), ("clip_log_std",)),
)


def find_assumptions(
    checkpoint: LegacyCheckpoint,
    networks: Mapping[str, Network],
    compared: Iterable[OutputDifference] = (),
) -> list[Assumption]:
    """Lists the assumptions about networks; a recording that agrees proves some of them."""
    recorded = [row for row in compared if row.kind == RECORDED and row.ok]
    rows = list[Assumption]()
    for policy_id, network in networks.items():
        policy = checkpoint.policies[policy_id]
        outputs = {row.output for row in recorded if row.policy_id == policy_id}
        rows += _assumptions_of(policy, ModelSettings.of(checkpoint, policy), network, outputs)
    return rows


def _assumptions_of(
    policy: PolicyState, settings: ModelSettings, network: Network, recorded: Collection[str]
) -> Iterator[Assumption]:
    graph = network.graph
    proven = graph.needed(name for name in recorded if name in graph.outputs)
    for setting in _SETTINGS:
        steps = [step for step in graph.steps if _has(step, setting)]
        values = dict.fromkeys(_value(step, setting) for step in steps)
        if values:
            yield Assumption(
                policy.policy_id,
                setting.what,
                "; ".join(values),
                "the module's own graph" if is_own(policy) else _source(setting, settings),
                all(step in proven for step in steps),
            )
    deterministic = registry.of(settings.algorithm).reader == "ddpg"
    yield from _head_assumptions(policy, network, recorded, deterministic=deterministic)
    yield from _filter_assumptions(policy, network, recorded)


def _has(step: Step, setting: _Setting) -> bool:
    wanted = not setting.ops or step.op in setting.ops
    return wanted and any(name in step.settings for name in setting.names)


def _value(step: Step, setting: _Setting) -> str:
    found = [(name, step.settings[name]) for name in setting.names if name in step.settings]
    if len(found) == 1:
        return str("linear" if found[0][1] is None else found[0][1])
    if setting.names == ("low", "range"):
        low, size = (_numbers(value) for _, value in found)
        high = [a + b for a, b in zip(low, size, strict=False)]
        return f"{_short(low)} to {_short(high)}"
    return ", ".join(f"{name} {_plain(value)}" for name, value in found)


def _numbers(value: Any) -> list[float]:
    return [float(n) for n in value] if isinstance(value, (list, tuple)) else [float(value)]


def _short(numbers: list[float]) -> str:
    shown = dict.fromkeys(f"{n:g}" for n in numbers) if len(set(numbers)) == 1 else numbers
    return ", ".join(str(n) if isinstance(n, str) else f"{n:g}" for n in shown)


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(_plain(part) for part in value) + ")"
    return str(value)


def _source(setting: _Setting, settings: ModelSettings) -> str:
    for key in setting.keys:
        if settings.config.get(key) is not None:
            return f"config: {key}"
        if settings.model.get(key) is not None:
            return f"config: model.{key}"
    return setting.default_source


def _head_assumptions(
    policy: PolicyState, network: Network, recorded: Collection[str], *, deterministic: bool
) -> Iterator[Assumption]:
    """Returns the assumption about the meaning of the head's outputs."""
    space = policy.action_space
    if space is None or "action_dist_inputs" not in network.graph.outputs:
        return
    meaning = f"a distribution over {space}"
    if isinstance(space, Box):
        numbers = "actions" if deterministic else "means and log standard deviations of actions"
        meaning = f"{numbers} in {space}"
        if not space.exact:
            meaning += ", whose bounds are as old gym printed them"
    yield Assumption(policy.policy_id, "head", meaning, _SPACE, HEAD in recorded)


def _filter_assumptions(
    policy: PolicyState, network: Network, recorded: Collection[str]
) -> Iterator[Assumption]:
    old = policy.observation_filter
    inside = any(step.name == FILTER for step in network.graph.steps)
    if old is None or not (old.stats or inside):
        return
    does = [
        "subtracts the mean" if old.demean else "",
        "divides by the deviation" if old.destd else "",
        f"clips to ±{old.clip:g}" if old.clip is not None else "clips nothing",
        f"epsilon {old.epsilon:g}",
    ]
    yield Assumption(
        policy.policy_id,
        "observation filter",
        f"{old.kind} {', '.join(part for part in does if part)}",
        "the filter's state; epsilon: its Ray",
        FILTER in recorded or (inside and bool(recorded)),
    )
