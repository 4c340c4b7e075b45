"""The proof of a conversion: the written files, read back, have the old network's outputs.

The proof compares the networks that were read and written. If a setting is from the config, a space
or a default, both sides have it, and only a recording can prove that it is correct. Such settings
are listed beside the proof, as assumptions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rllib_compat import registry
from rllib_compat.conversion import compare, recordings
from rllib_compat.conversion.compare import HEAD, RECORDED, Array, Forward, OutputDifference
from rllib_compat.conversion.complete import complete
from rllib_compat.conversion.given import Given, Samples
from rllib_compat.conversion.identify import identify_networks
from rllib_compat.conversion.plan import Plan
from rllib_compat.formats import layouts
from rllib_compat.networks import (
    CustomNetwork,
    ModelSettings,
    Network,
    Outputs,
    known,
)
from rllib_compat.networks import read as read_network
from rllib_compat.networks.graph import Step
from rllib_compat.networks.observation_filter import STEP as FILTER
from rllib_compat.networks.read import is_own
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.choices import OF_RAY, Form
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Box, Discrete

#: The output of a model with the environment's actions.
ACTION = "action"


@np.errstate(over="ignore", invalid="ignore")  # weights that are no numbers have a row of their own
def compare_written(
    plan: Plan, target: Path, samples: Samples, budget: Budget
) -> list[OutputDifference]:
    """Compares the networks of a plan with files that this process has written.

    Returns:
        A row for each policy and output, and one for each policy's weights.

    Raises:
        CheckpointError: The recording does not fit a policy, or cannot be compared in this form.
    """
    if plan.form in (Form.ONNX, Form.SAFETENSORS, Form.HUB):
        return _compare_export(plan, target, samples)
    networks, forwards = known(plan.networks), dict[str, Forward]()
    rows = list[OutputDifference]()
    if plan.form in OF_RAY:
        from rllib_compat.networks import rl_modules

        for policy_id, module in rl_modules.load(target, plan.networks).items():
            arrays = plan.networks[policy_id].module_state()
            rows += compare.compare_weights(policy_id, arrays, module.weights())
            forwards[policy_id] = module
    else:  # the msgpack form has a custom model's own arrays, not the module's
        budget.start_clock()
        again = layouts.read(target, budget)
        for policy_id, network in networks.items():
            policy = again.policies[policy_id]
            new = read_network(policy, ModelSettings.of(again, policy)).known
            rows += compare.compare_weights(policy_id, network.arrays, new.arrays)
            forwards[policy_id] = new.forward
    rows += compare.compare_on_samples(plan.checkpoint, networks, forwards, samples)
    if samples.recorded is not None:
        rows += _compare_recorded(plan, forwards, samples.recorded)
    return rows


@np.errstate(over="ignore", invalid="ignore")
def compare_tree(
    plan: Plan, target: Path, samples: Samples, budget: Budget
) -> list[OutputDifference]:
    """Compares the networks of a plan with a Checkpointable tree that is not trusted.

    Ray does not load the tree, since that would execute its pickles. This package reads it, and
    computes it in numpy, and in torch with modules that are built from the same data.

    Returns:
        A row for each policy and output: the worse of the two.
    """
    from rllib_compat.conversion.write import modules

    networks = known(plan.networks)
    budget.start_clock()
    given = Given(algorithm=plan.checkpoint.algorithm)
    tree = complete(layouts.read(target, budget), given)
    some = tree.with_policies(p for k, p in tree.policies.items() if k in networks)
    some, found = identify_networks(some, given)
    by_numpy = {policy_id: network.forward for policy_id, network in known(found).items()}
    compared = []
    for forwards in (by_numpy, modules.build(some, found)):
        rows = compare.compare_on_samples(plan.checkpoint, networks, forwards, samples)
        if samples.recorded is not None:
            rows += _compare_recorded(plan, forwards, samples.recorded)
        compared.append(rows)
    worse = [
        max(pair, key=lambda row: (not row.ok, row.times)) for pair in zip(*compared, strict=True)
    ]
    for policy_id, network in plan.networks.items():
        if isinstance(network, CustomNetwork):
            policy = tree.policies.get(policy_id)
            numbers = policy.weights if policy and isinstance(policy.weights, dict) else {}
            worse += compare.compare_weights(policy_id, network.module_state(), numbers)
    return worse


def _compare_export(plan: Plan, target: Path, samples: Samples) -> list[OutputDifference]:
    """Compares files for other libraries: arrays bit by bit, models on inputs."""
    from rllib_compat.conversion.write import exports
    from rllib_compat.networks import onnx

    if samples.recorded is not None:
        raise CheckpointError(
            f"A recording is not compared with {plan.form.value}.",
            where="--recorded",
            fix="Use it with `--to msgpack`, which needs no Ray either.",
        )
    if plan.form is not Form.ONNX:
        return exports.compare_safetensors(plan, target)
    networks = {k: onnx.without_critics(network) for k, network in known(plan.networks).items()}
    models = {k: onnx.OnnxNetwork(target / f"{k}.onnx", n) for k, n in networks.items()}
    rows = compare.compare_on_samples(plan.checkpoint, networks, models, samples, onnx.single_steps)
    batches = compare.random_inputs(plan.checkpoint, networks, max(samples.random, 1))
    for policy_id, network in networks.items():
        acting = exports.find_acting(plan, policy_id, network)
        if acting is not None:
            made = models[policy_id].step(onnx.single_steps(network.graph, batches[policy_id]))
            # From the model's own output, so that nearly equal values of two actions do not matter.
            old = acting(made[acting.chooser.output])
            size = max(np.abs(made[acting.chooser.output]).max(initial=1.0), np.abs(old).max())
            unit = 0.0 if old.dtype.kind in "iu" else float(np.finfo(np.float32).eps) * size
            allowed = {ACTION: np.full(old.shape, unit)}
            rows += compare.compare(policy_id, {ACTION: old}, {ACTION: made[ACTION]}, allowed)
    return rows


def _compare_recorded(
    plan: Plan, forwards: Mapping[str, Forward], arrays: Mapping[str, Array]
) -> list[OutputDifference]:
    """Compares new modules with the old Ray's recording.

    Raises:
        CheckpointError: Nothing in it can be compared.
    """
    if not plan.networks:
        (unknown,) = plan.findings
        raise CheckpointError(
            f"The recording cannot be compared: {unknown.message}.",
            where=unknown.path,
            fix="Pass the missing facts, or omit --recorded.",
        )
    rows = []
    for policy_id, network in plan.networks.items():
        policy = plan.checkpoint.policies[policy_id]
        own = recordings.arrays_of(arrays, policy)
        rows += _compare_filter(policy, own)
        kept = recordings.find_recording(own, network)
        if kept is None or policy_id not in forwards:
            continue
        made = forwards[policy_id](kept.inputs)
        outputs: Outputs = kept.outputs
        if isinstance(network, CustomNetwork):
            # The error is measured with the module's own float32.
            errors = compare.measure_errors(forwards[policy_id], kept.inputs, made)
            outputs = {
                name: theirs.reshape(made[name].shape)
                for name, theirs in outputs.items()
                if name in made
            }
        else:
            errors = compare.float32_errors(network, kept.inputs, network.forward(kept.inputs))
        rows += compare.compare(policy_id, outputs, made, errors, kind=RECORDED)
        rows += _compare_head(policy, own, made, errors)
    if not rows:
        names = sorted(arrays)
        named = ", ".join(names[:8]) + (", …" if len(names) > 8 else "") if names else "no arrays"
        raise CheckpointError(
            f"The recording has no arrays to compare; it has {named}.",
            where="--recorded",
            fix="Use the script of `rllib-compat recorder`, which records the needed arrays.",
        )
    return rows


def _compare_head(
    policy: PolicyState, arrays: Mapping[str, Array], made: Outputs, errors: Outputs
) -> list[OutputDifference]:
    """Compares recorded actions with the greedy actions of the head, if they agree.

    A recording may have sampled actions (Ray 0.5 to 0.7 always sampled), which prove nothing and
    are not an error.
    """
    space, taken = policy.action_space, arrays.get("action")
    logits = made.get("action_dist_inputs")
    if taken is None or logits is None:
        return []
    logits = logits.reshape(len(logits), -1)
    allowed: dict[str, Array] | None = None
    if isinstance(space, Discrete) and taken.shape == (len(logits),):
        means = logits.argmax(-1) + space.start
    elif isinstance(space, Box) and logits.shape[1] == 2 * space.flat_size():
        means = logits[:, : space.flat_size()].reshape(-1, *space.shape)
        of_means = errors["action_dist_inputs"].reshape(logits.shape)[:, : space.flat_size()]
        allowed = {HEAD: of_means.reshape(means.shape)}
    else:
        return []
    if taken.shape != means.shape:
        return []
    rows = compare.compare(policy.policy_id, {HEAD: taken}, {HEAD: means}, allowed, kind=RECORDED)
    return [row for row in rows if row.ok]


def _compare_filter(policy: PolicyState, arrays: Mapping[str, Array]) -> list[OutputDifference]:
    """Compares the observation filter, if observations before and after it were recorded."""
    old = policy.observation_filter
    before = next((arrays[name] for name in recordings.UNFILTERED if name in arrays), None)
    behind = next((arrays[name] for name in ("net_in", "obs_in") if name in arrays), None)
    if old is None or len(old.stats) != 1 or before is None or behind is None:
        return []
    shape = old.stats[0].mean.shape
    if before.shape != behind.shape or before.shape[1:] != shape:
        return []

    def filtered(inputs: Mapping[str, Array]) -> dict[str, Array]:
        return {FILTER: np.asarray(old(inputs["obs"]))}

    made = filtered({"obs": before})
    errors = compare.measure_errors(filtered, {"obs": before}, made)
    return compare.compare(policy.policy_id, {FILTER: behind}, made, errors, kind=RECORDED)


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
