"""What becomes of a checkpoint: an algorithm, its modules alone, or files that need no Ray.

It is decided once, here, by what the networks of its policies are. Writing, the proof and the
report read the `Plan`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from rllib_compat import ray_versions, registry
from rllib_compat.conversion.complete import algorithm_of_arrays, complete, require_facts
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.policy_spaces import add_spaces_of_network
from rllib_compat.networks import (
    AnyNetwork,
    CustomModel,
    CustomNetwork,
    ModelSettings,
    Network,
    custom,
    known,
)
from rllib_compat.networks import read as read_network
from rllib_compat.networks.custom import without_custom_model
from rllib_compat.networks.custom_module import has_parts
from rllib_compat.networks.names.plain import MOVING_AVERAGE
from rllib_compat.networks.wrappers.filter import can_hold, with_filter
from rllib_compat.networks.wrappers.previous_steps import (
    PREVIOUS_ACTIONS,
    PREVIOUS_REWARDS,
    with_own_observations,
)
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import CheckpointError, CompatError, NotConvertibleError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Discrete

if TYPE_CHECKING:
    from rllib_compat.config import Translation

#: Today's module that acts at random.
RANDOM_MODULE = "ray.rllib.examples.rl_modules.classes.random_rlm:RandomRLModule"

#: Ray's own policies, and its module, that act at random, as every release called them.
_RANDOM_POLICIES = {
    "ray.rllib.examples.multi_agent_custom_policy.RandomPolicy",
    "ray.rllib.examples.policy.random_policy.RandomPolicy",
    "ray.rllib.examples._old_api_stack.policy.random_policy.RandomPolicy",
    RANDOM_MODULE.replace(":", "."),
}

#: How many policies an error names.
_LISTED = 5


class Form(Enum):
    """What is written."""

    #: A Checkpointable tree of an algorithm, on which training goes on.
    ALGORITHM = "algorithm"
    #: The RLModules of such a tree alone: they act, and nothing trains on.
    MODULES = "modules"
    #: The neutral state, which needs no Ray.
    MSGPACK = "msgpack"
    #: The networks as ONNX models.
    ONNX = "onnx"
    #: The networks' arrays as safetensors.
    SAFETENSORS = "safetensors"

    @property
    def needs_ray(self) -> bool:
        """Whether the installed Ray reads it."""
        return self in (Form.ALGORITHM, Form.MODULES)


@frozen
class Plan:
    """What is written of a checkpoint, and why.

    Attributes:
        form: What is written.
        checkpoint: The neutral state, completed.
        networks: The network of each policy, as it is written; empty where msgpack keeps weights
            of an unknown network.
        reason: Why training can't go on, where only modules are written.
        translation: The translated config, where an algorithm is written.
        findings: What was noticed while this was decided.
    """

    form: Form
    checkpoint: LegacyCheckpoint
    networks: Mapping[str, AnyNetwork]
    reason: str = ""
    translation: Translation | None = None
    findings: tuple[Finding, ...] = ()


def make_plan(checkpoint: LegacyCheckpoint, given: Given, *, to: str = "checkpointable") -> Plan:
    """Completes a checkpoint, finds its networks, and decides what is written of it.

    Args:
        checkpoint: What a layout has read.
        given: What the caller knows besides.
        to: `checkpointable`, or the value of a form that needs no Ray.

    Raises:
        CheckpointError: Something has to be given, or a network is not known; `msgpack` and
            `safetensors` keep such a checkpoint's weights nevertheless.
        RayNotSupportedError: There is no Ray to write for.
    """
    if to == "checkpointable":
        ray_versions.installed()  # what is missing is an error before the work, not after it
    checkpoint = complete(checkpoint, given)
    if to == "msgpack":
        return _plan_as_far_as_known(checkpoint, given, Form.MSGPACK)
    if to == "safetensors":
        return _plan_as_far_as_known(drop_weightless(checkpoint), given, Form.SAFETENSORS)
    require_facts(checkpoint, given)
    if to == "onnx":
        return _plan_onnx(*identify_networks(drop_weightless(checkpoint), given))
    return _plan_checkpointable(*identify_networks(drop_weightless(checkpoint), given), given)


def _plan_as_far_as_known(checkpoint: LegacyCheckpoint, given: Given, form: Form) -> Plan:
    """With the networks, or with the weights as they are where those are not known."""
    try:
        require_facts(checkpoint, given)
        known_checkpoint, networks = identify_networks(checkpoint, given)
        if form is Form.SAFETENSORS:
            networks = _with_filters(known_checkpoint, networks)
        return Plan(form, known_checkpoint, networks)
    except CompatError as error:
        unknown = Finding.warning(
            "network",
            Verdict.NOTE,
            error.where or "policies",
            f"the weights are kept as they are: {error.found}",
            "only their equality can be shown, not the network's outputs",
        )
        return Plan(form, checkpoint, {}, findings=(unknown,))


def _plan_onnx(checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]) -> Plan:
    """The networks with their filters; without those that are not known."""
    held = _with_filters(checkpoint, known(networks))
    unknown = [policy_id for policy_id in checkpoint.policies if policy_id not in held]
    if not held:
        raise NotConvertibleError(
            "No policy has a known network, and an ONNX model is what a network computes.",
            where=str(checkpoint.source.path),
            fix="`--to safetensors` keeps the weights by their names.",
        )
    findings = tuple(
        Finding.warning(
            "network",
            Verdict.DROPPED,
            f"policies.{policy_id}",
            "what it computes is not known: it gets no ONNX model",
            "`--to safetensors` keeps weights by their names",
        )
        for policy_id in unknown
    )
    return Plan(Form.ONNX, checkpoint, held, findings=findings)


def _plan_checkpointable(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork], given: Given
) -> Plan:
    reason = _why_not_trainable(checkpoint, networks, given)
    if reason is None:
        from rllib_compat.conversion.config import translate_config

        translation, findings = translate_config(checkpoint, given)
        new_only = registry.of(translation.algorithm).new_stack_only
        if translation.api_stack == "new" and not (new_only and translation.needs_old_stack):
            return Plan(
                Form.ALGORITHM,
                checkpoint,
                networks,
                translation=translation,
                findings=findings,
            )
        keys = ", ".join(translation.needs_old_stack)
        reason = f"{keys} can be trained on the old API stack only"
        if new_only:
            reason += f", for which there is no {translation.algorithm}"
    return Plan(Form.MODULES, checkpoint, _with_filters(checkpoint, networks), reason)


def _why_not_trainable(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork], given: Given
) -> str | None:
    """Why training can't go on, as far as algorithm, networks and spaces show."""
    if checkpoint.modules_alone and given.algorithm is None:
        return "it holds modules alone, without the algorithm and config that trained them"
    algorithm = registry.of(checkpoint.algorithm)
    if not algorithm.trains_on:
        return f"today's Ray has no {algorithm.name}"
    recurrent = any(n.graph.recurrent for n in known(networks).values())
    if algorithm.reader == "q" and algorithm.becomes in ("DQN", "APEX") and recurrent:
        # Ray's prioritized buffer dies of an error by step (`update_priorities`, 2.40 - 2.60).
        return f"{algorithm.becomes} can't train a network with an LSTM today"
    if algorithm.offline and any(map(_takes_step_before, known(networks).values())):
        return "recorded observations have no step before behind them, which its LSTM takes"
    if algorithm.soft_actor_critic and any(
        "q_values" not in n.graph.outputs for n in known(networks).values()
    ):
        return "the checkpoint has no whole critics"
    discrete = any(isinstance(p.action_space, Discrete) for p in checkpoint.policies.values())
    if algorithm.name == "SAC" and discrete and not ray_versions.trains_discrete_sac():
        return f"the SAC of Ray {ray_versions.installed()} learns no discrete actions (2.60's does)"
    return None


def _takes_step_before(network: Network) -> bool:
    """Whether a network sees the step before."""
    return bool(network.graph.inputs.keys() & {PREVIOUS_ACTIONS, PREVIOUS_REWARDS})


def _with_filters(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]
) -> dict[str, AnyNetwork]:
    """Puts observation filters into networks that are written alone, without connectors."""
    held = dict(networks)
    for policy_id, network in known(networks).items():
        old = checkpoint.policies[policy_id].observation_filter
        if old is not None and can_hold(network, old):
            held[policy_id] = with_filter(network, old)
    return held


def identify_networks(
    checkpoint: LegacyCheckpoint, given: Given
) -> tuple[LegacyCheckpoint, dict[str, AnyNetwork]]:
    """Finds the network of every policy with weights, and makes sure that each has its spaces.

    Returns:
        The checkpoint, with what the networks showed of its policies; and the networks.

    Raises:
        CheckpointError: A network is not known, or a space was found nowhere.
    """
    policies, networks, findings = [], dict[str, AnyNetwork](), list[Finding]()
    refused: dict[str, CheckpointError] = {}
    for policy in checkpoint.policies.values():
        if not policy.has_weights:
            policies.append(policy)
            continue
        try:
            network, completed, found = _identify_with_spaces(checkpoint, policy, given)
        except CheckpointError as error:
            refused[policy.policy_id] = error
            continue
        policies.append(completed)
        networks[policy.policy_id] = network
        findings += found
    if refused:
        raise _combined_error(refused, networks)
    checkpoint = checkpoint.with_policies(policies).with_findings(findings)
    if any(isinstance(network, CustomNetwork) for network in networks.values()):
        checkpoint = replace(checkpoint, config=without_custom_model(checkpoint.config))
    return checkpoint, networks


def _identify_with_spaces(
    checkpoint: LegacyCheckpoint, policy: PolicyState, given: Given
) -> tuple[AnyNetwork, PolicyState, list[Finding]]:
    """The network of a policy, the policy with its spaces, and what was noticed."""
    network, policy, found = identify_network(checkpoint, policy, given)
    choices = network.choices if isinstance(network, Network) else None
    policy, more = add_spaces_of_network(policy, network.inputs, checkpoint.config, choices)
    if isinstance(network, CustomNetwork):
        policy = replace(policy, config=without_custom_model(policy.config))
    return network, policy, [*found, *more]


def _combined_error(
    refused: Mapping[str, CheckpointError], known: Collection[str]
) -> CheckpointError:
    """The first policy's error; it says how the others are converted, where that is possible."""
    first, *more = refused.values()
    if not known:
        return first
    found = first.found
    if more:
        others = ", ".join(list(refused)[1 : 1 + _LISTED])
        found += f" ({len(more)} more policies likewise: {others}{', …' * (len(more) > _LISTED)})"
    options = " ".join(f"--policy {policy_id}" for policy_id in list(known)[:_LISTED])
    rest = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    fix = f"{first.fix or ''} The others can be converted without it: {options}{rest}.".strip()
    return type(first)(found, where=first.where, fix=fix)


def _with_likely_algorithm(checkpoint: LegacyCheckpoint, error: CheckpointError) -> CheckpointError:
    """The error, with the algorithm whose arrays these are: folders and flags can be wrong."""
    family = algorithm_of_arrays(checkpoint)
    named = checkpoint.algorithm
    if family is None or named is None or named in registry.family(family):
        return error
    fix = f"{named} has no arrays of such names, {family} has: --algorithm {family}, if it was."
    return type(error)(error.found, where=error.where, fix=f"{fix} {error.fix or ''}".strip())


def identify_network(
    checkpoint: LegacyCheckpoint, policy: PolicyState, given: Given
) -> tuple[AnyNetwork, PolicyState, tuple[Finding, ...]]:
    """Finds the network of one policy.

    Returns:
        The network, the policy with the state that was among its weights, and what was noticed.

    Raises:
        CheckpointError: The network is not known.
    """
    model = None
    if given.model:
        # Where no config names a custom model, the caller says that the policies have one.
        own = [
            custom.is_custom(p, ModelSettings.of(checkpoint, p))
            for p in checkpoint.policies.values()
        ]
        seen = [p.observation_space for p in checkpoint.policies.values()]
        others = any(has_parts(s) and not o for s, o in zip(seen, own, strict=True))
        model = CustomModel(
            given.model,
            given.weights_map,
            everywhere=not any(own),
            in_parts=not (any(own) and others),
        )
    policy = with_own_observations(policy)
    try:
        reading = read_network(policy, ModelSettings.of(checkpoint, policy), model)
    except CheckpointError as error:
        raise _with_likely_algorithm(checkpoint, error) from error.__cause__
    return reading.network, _with_state(policy, reading.state), reading.findings


def _with_state(policy: PolicyState, state: Mapping[str, float]) -> PolicyState:
    """The policy with what was stored among its weights, where it has no such state yet."""
    missing = [name for name in state if getattr(policy, name, state) is None]
    own: dict[str, Any] = {name: state[name] for name in missing}
    extra = {name: state[name] for name in state if name == MOVING_AVERAGE}
    return replace(policy, extra={**policy.extra, **extra}, **own)


def is_random(policy: PolicyState) -> bool:
    """Whether a policy was declared to be Ray's own random one, and its actions are known."""
    known = policy.action_space is not None and policy.observation_space is not None
    return known and not policy.has_weights and policy.policy_class in _RANDOM_POLICIES


def drop_weightless(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    """Drops policies without weights: what they did was code (a heuristic, random actions).

    One is kept if it was Ray's own random policy, of which today's Ray has a module. Each has a row
    in the report.

    Raises:
        NotConvertibleError: No policy has weights.
    """
    policies = checkpoint.policies.values()
    if not any(p.has_weights for p in policies):
        raise NotConvertibleError(
            "No policy has weights: what they did was code, which is not in a checkpoint.",
            where=str(checkpoint.source.path),
            fix="Write RLModules that do the same (Ray's examples have one of a heuristic: "
            "ray/rllib/examples/rl_modules/classes/rock_paper_scissors_heuristic_rlm.py).",
        )
    kept = checkpoint.with_policies(p for p in policies if p.has_weights or is_random(p))
    return kept.with_findings(_weightless_findings(checkpoint))


def _weightless_findings(checkpoint: LegacyCheckpoint) -> Iterator[Finding]:
    for policy in checkpoint.policies.values():
        if policy.has_weights:
            continue
        path, cls = f"policies.{policy.policy_id}", policy.policy_class
        if is_random(policy):
            message = "it has no weights, as Ray's random policy; it is a RandomRLModule now"
            yield Finding.info("no-weights", Verdict.CONVERTED, path, message)
            continue
        yield Finding.warning(
            "no-weights",
            Verdict.DROPPED,
            path,
            "it has no weights: what it did was the code of its class"
            f"{f' {cls}' if cls else ''}, which was not executed",
            "to have it again, write an RLModule that does the same and add it: "
            f"algorithm.add_module({policy.policy_id!r}, RLModuleSpec(module_class=MyModule)); "
            "it must not be among policies_to_train",
        )
