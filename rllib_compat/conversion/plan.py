"""Plans what to write: an algorithm, only its modules, or files that need no Ray.

The networks of the policies decide, once. Writing, the proof and the report use the `Plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rllib_compat import registry
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.identify import Identified
from rllib_compat.networks import AnyNetwork, Network, known
from rllib_compat.networks.observation_filter import can_hold, with_filter
from rllib_compat.networks.previous_steps import PREVIOUS_ACTIONS, PREVIOUS_REWARDS
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.choices import Form
from rllib_compat.neutral.errors import CompatError, NotConvertibleError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Verdict

if TYPE_CHECKING:
    from rllib_compat.config import Translation


@frozen
class Plan:
    """The form to write for a checkpoint, and why.

    Attributes:
        form: The form.
        checkpoint: The completed neutral state.
        networks: The network of each policy to write; empty if msgpack keeps weights of an unknown
            network.
        reason: Why training cannot continue, if only modules are written.
        translation: The translated config, if an algorithm is written.
        findings: The findings of the planning.
    """

    form: Form
    checkpoint: LegacyCheckpoint
    networks: Mapping[str, AnyNetwork]
    reason: str = ""
    translation: Translation | None = None
    findings: tuple[Finding, ...] = ()


def make_plan(identified: Identified, given: Given, *, to: str) -> Plan:
    """Decides what to write for a checkpoint in the form `to`.

    Raises:
        NotConvertibleError: The checkpoint cannot be written in this form.
    """
    if identified.unknown is not None:
        return Plan(Form(to), identified.checkpoint, {}, findings=(_unknown(identified.unknown),))
    checkpoint, networks = identified.checkpoint, identified.networks
    if to == "checkpointable":
        return _plan_checkpointable(checkpoint, networks, given)
    if to == "onnx":
        return _plan_onnx(checkpoint, networks)
    if to in ("safetensors", "policy", "hub"):
        networks = _with_filters(checkpoint, networks)
    return Plan(Form(to), checkpoint, networks)


def _unknown(error: CompatError) -> Finding:
    """Returns the row of a report without a known network."""
    return Finding.warning(
        "network",
        Verdict.NOTE,
        error.where or "policies",
        f"the weights are copied without a known network: {error.found}",
        "the proof compares only weights, not outputs",
    )


def _plan_onnx(checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]) -> Plan:
    """Plans ONNX models of the known networks, with their filters."""
    held = _with_filters(checkpoint, known(networks))
    unknown = [policy_id for policy_id in checkpoint.policies if policy_id not in held]
    if not held:
        raise NotConvertibleError(
            "No policy has a known network, which an ONNX model needs.",
            where=str(checkpoint.source.path),
            fix="use `--to safetensors`, which writes the weights by name",
        )
    findings = tuple(
        Finding.warning(
            "network",
            Verdict.DROPPED,
            f"policies.{policy_id}",
            "its network is not known, so no ONNX model is written",
            "`--to safetensors` writes weights by name",
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
                Form.ALGORITHM, checkpoint, networks, translation=translation, findings=findings
            )
        keys = ", ".join(translation.needs_old_stack)
        reason = f"{keys} can be trained on the old API stack only"
        if new_only:
            reason += f", for which there is no {translation.algorithm}"
    return Plan(Form.MODULES, checkpoint, _with_filters(checkpoint, networks), reason)


def _why_not_trainable(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork], given: Given
) -> str | None:
    """Returns why training cannot continue, by algorithm, networks and spaces; None: it can."""
    if checkpoint.modules_alone and given.algorithm is None:
        return "it has only modules, without the algorithm and config that trained them"
    algorithm = registry.of(checkpoint.algorithm)
    if not algorithm.reader:
        return f"the installed Ray has no {algorithm.name}"
    recurrent = any(n.graph.recurrent for n in known(networks).values())
    if algorithm.reader == "q" and algorithm.becomes in ("DQN", "APEX") and recurrent:
        # Ray's prioritized buffer raises an error by step (`update_priorities`, 2.40 - 2.60).
        return f"{algorithm.becomes} of the installed Ray cannot train a network with an LSTM"
    if algorithm.reader == "maddpg" and checkpoint.source.layout.endswith(" policy"):
        return "its critic needs the observations and actions of all agents, and it has one policy"
    if algorithm.offline and any(map(_takes_step_before, known(networks).values())):
        return "its LSTM needs the previous step, which recorded observations do not have"
    if algorithm.soft_actor_critic and any(
        "q_values" not in n.graph.outputs for n in known(networks).values()
    ):
        return "the checkpoint has no complete critics"
    return None


def _takes_step_before(network: Network) -> bool:
    """Whether a network has the previous step as an input."""
    return bool(network.graph.inputs.keys() & {PREVIOUS_ACTIONS, PREVIOUS_REWARDS})


def _with_filters(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]
) -> dict[str, AnyNetwork]:
    """Adds observation filters to networks that are written without connectors."""
    held = dict(networks)
    for policy_id, network in known(networks).items():
        old = checkpoint.policies[policy_id].observation_filter
        if old is not None and can_hold(network, old):
            held[policy_id] = with_filter(network, old)
    return held
