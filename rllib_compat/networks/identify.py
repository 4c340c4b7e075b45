"""Which network a policy's weights are, from their names and shapes and the config together.

Named weights say themselves what network they are; the config adds what no array shows (the
activation) and is held against the rest. A contradiction is an error: then the config belongs to
another checkpoint, and its activation would be a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.checkpoints.state import PolicyState
from rllib_compat.errors import CheckpointError, MissingInformationError, NotYetError
from rllib_compat.networks.fcnet import BUFFERS, SCHEMES, FullyConnected, fold_slopes
from rllib_compat.networks.mapping import to_canonical
from rllib_compat.networks.unnamed import name_list, name_vector
from rllib_compat.report import Finding, Severity, Verdict
from rllib_compat.spaces import Box, Discrete, MultiDiscrete, Space, TupleSpace

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Words in weight names, and the networks that they give away.
_SIGNS = (
    (re.compile(r"gtrxl|attention", re.I), "attention (GTrXL)"),
    (re.compile(r"lstm|rnn", re.I), "LSTM"),
    (re.compile(r"(^|[/._])_?conv", re.I), "vision (convolutions)"),
    (re.compile(r"cnn|one_hot|flatten\.", re.I), "complex input"),
    (re.compile(r"q_func|dueling|advantage_module|q_net|twin|q_model|q_hidden", re.I), "Q"),
)

_WRAPPERS = {"use_attention": "attention (GTrXL)", "use_lstm": "LSTM"}

#: Scalars that TensorFlow policies kept among their variables, and no network has.
_SCALARS = ("kl_coeff", "entropy_coeff", "lr")


@dataclass(frozen=True)
class ModelSettings:
    """What a legacy config says of a policy's network, with the defaults of its Ray.

    Attributes:
        hiddens: The hidden sizes; None where the user left the default.
        activation: The hidden layers' activation.
        shares_layers: `vf_share_layers`, from `model` or from the top level (before Ray 1.3).
        free_log_std: As given.
        custom_model: What the user registered or passed, or None.
        wrapper: The recurrent network around the model that the config asks for, or None.
        kl_coeff: PPO's initial KL coefficient.
        entropy_coeff: PPO's entropy coefficient; None where a schedule changes it.
    """

    hiddens: tuple[int, ...] | None = None
    activation: str = "tanh"
    shares_layers: bool = False
    free_log_std: bool = False
    custom_model: Any = None
    wrapper: str | None = None
    kl_coeff: float | None = 0.2
    entropy_coeff: float | None = 0.0

    @classmethod
    def from_config(cls, config: Mapping[str, Any], policy: Mapping[str, Any]) -> ModelSettings:
        """Reads them from a trainer's config and what a policy overrides in it."""
        model = _mapping(config.get("model")) | _mapping(policy.get("model"))
        merged = {**config, **policy}
        hiddens = None
        if "fcnet_hiddens" in model or "post_fcnet_hiddens" in model:
            # Ray 1.3 – 2.x: the fully connected network simply gets the post layers, too.
            given = model.get("fcnet_hiddens", [256, 256])
            hiddens = (*given, *(model.get("post_fcnet_hiddens") or ()))
        activation = model.get("fcnet_activation", "tanh")
        if not model.get("fcnet_hiddens", True):
            activation = model.get("post_fcnet_activation", "relu")
        scheduled = merged.get("entropy_coeff_schedule") is not None
        return cls(
            hiddens=hiddens,
            activation="linear" if activation is None else str(activation),
            shares_layers=bool(merged.get("vf_share_layers", model.get("vf_share_layers", False))),
            free_log_std=bool(model.get("free_log_std", False)),
            custom_model=model.get("custom_model"),
            wrapper=next((kind for key, kind in _WRAPPERS.items() if model.get(key)), None),
            kl_coeff=_number(merged.get("kl_coeff", 0.2)),
            entropy_coeff=None if scheduled else _number(merged.get("entropy_coeff", 0.0)),
        )


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def distribution_inputs(space: Space) -> int | None:
    """How many numbers RLlib's default action distribution takes for an action space."""
    if isinstance(space, Discrete):
        return space.n
    if isinstance(space, MultiDiscrete):
        return sum(space.nvec)
    if isinstance(space, Box):
        return 2 * space.flat_size()
    if isinstance(space, TupleSpace):
        parts = [distribution_inputs(s) for s in space.spaces]
        return None if None in parts else sum(p for p in parts if p is not None)
    return None


def identify(policy: PolicyState, settings: ModelSettings) -> tuple[FullyConnected, list[Finding]]:
    """Finds the network of a policy.

    Returns:
        The network with its arrays, and what was noticed on the way.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: A size has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    where = f"policies.{policy.policy_id}.weights"
    if settings.custom_model is not None:
        raise NotYetError(
            f"Not yet: the custom model {settings.custom_model}.",
            where=f"policies.{policy.policy_id}.model.custom_model",
            fix="`--to msgpack` keeps its weights by name.",
        )
    scalars: dict[str, float] = {}
    if isinstance(policy.weights, dict):
        arrays, scheme, scalars = _named(policy.policy_id, policy.weights, where)
    else:
        arrays, scheme, scalars = _unnamed(policy, settings, where)
    slopes = any(name.endswith(".beta") for name in arrays)
    network = FullyConnected(fold_slopes(arrays, where=where), settings.activation, scheme)
    findings = _compare(network, policy, settings, where)
    if slopes:
        findings.append(
            Finding(
                "network",
                Severity.INFO,
                Verdict.DERIVED,
                where,
                "the trained slopes of swish were moved into the weights around them: the same "
                "function, with slopes that are not trained any further",
            )
        )
    if policy.kl_coeff is None and "kl_coeff" in scalars:
        policy.kl_coeff = scalars["kl_coeff"]
    return network, findings


def _named(
    policy_id: str, weights: Mapping[str, Array], where: str
) -> tuple[dict[str, Array], str, dict[str, float]]:
    plain = {_strip(policy_id, name): np.asarray(array) for name, array in weights.items()}
    scalars = {k: float(plain.pop(k)) for k in _SCALARS if k in plain and plain[k].ndim == 0}
    plain = {k: v for k, v in plain.items() if k not in BUFFERS}
    found: list[tuple[int, str, dict[str, Array], list[str]]] = []
    for scheme, table in SCHEMES.items():
        arrays, left = to_canonical(table, plain)
        if arrays:
            found.append((len(left), scheme, arrays, left))
    left = min(found, key=lambda f: f[0])[3] if found else list(plain)
    if left:
        raise NotYetError(
            f"Not yet: {_guess(plain)} network; {len(left)} of its {len(plain)} arrays belong to "
            f"no fully connected network, for example {left[0] if left else 'none'!r}.",
            where=where,
            fix="`--to msgpack` keeps all weights by name.",
        )
    _, scheme, arrays, _ = min(found, key=lambda f: f[0])
    return arrays, scheme, scalars


def _strip(policy_id: str, name: str) -> str:
    """Takes off TensorFlow's scope and output number (`default_policy/fc_1/kernel:0`)."""
    scope = "default/" if name.startswith("default/") else f"{policy_id}/"
    return name.removeprefix(scope).removesuffix(":0")


def _guess(names: Mapping[str, Array]) -> str:
    for pattern, kind in _SIGNS:
        if any(pattern.search(name) for name in names):
            return f"the {kind}"
    return "a custom or unknown"


def _unnamed(
    policy: PolicyState, settings: ModelSettings, where: str
) -> tuple[dict[str, Array], str, dict[str, float]]:
    """Names the arrays of a list or a flat vector, if they are a fully connected network."""
    try:
        if isinstance(policy.weights, list):
            return name_list(policy.weights, where=where), "list", {}
        arrays, scalars = _cut_vector(policy, settings, where)
        return arrays, "vector", scalars
    except MissingInformationError:
        raise
    except CheckpointError as error:
        # The arrays have no names to tell what they are; the config and the observations do.
        space = policy.observation_space
        image = isinstance(space, Box) and len(space.shape) == 3
        kind = settings.wrapper or ("vision (convolutions)" if image else None)
        if kind is None:
            raise
        raise NotYetError(
            f"Not yet: the {kind} network.", where=where, fix="`--to msgpack` keeps all weights."
        ) from error


def _cut_vector(
    policy: PolicyState, settings: ModelSettings, where: str
) -> tuple[dict[str, Array], dict[str, float]]:
    inputs = policy.observation_space.flat_size() if policy.observation_space else None
    if inputs is None and policy.observation_filter and policy.observation_filter.stats:
        inputs = sum(stat.mean.size for stat in policy.observation_filter.stats)
    outputs = distribution_inputs(policy.action_space) if policy.action_space else None
    return name_vector(
        np.asarray(policy.weights),
        inputs=inputs,
        outputs=outputs,
        hiddens=settings.hiddens if settings.hiddens is not None else (256, 256),
        shares_layers=settings.shares_layers,
        free_log_std=settings.free_log_std,
        scalars={"kl_coeff": settings.kl_coeff, "entropy_coeff": settings.entropy_coeff},
        where=where,
    )


def _compare(
    network: FullyConnected, policy: PolicyState, settings: ModelSettings, where: str
) -> list[Finding]:
    """Holds the network against the config and the spaces."""
    if settings.hiddens is not None and list(settings.hiddens) != network.hiddens:
        raise CheckpointError(
            f"The weights have hidden layers {network.hiddens}, the config says "
            f"{list(settings.hiddens)}: the config is not this checkpoint's.",
            where=where,
            fix="Give the right config with --config, or check --policy names.",
        )
    wanted = [("observation", policy.observation_space, network.inputs, "inputs")]
    wanted += [("action", policy.action_space, network.outputs, "outputs")]
    for name, space, have, what in wanted:
        size = None
        if space is not None:
            size = space.flat_size() if name == "observation" else distribution_inputs(space)
        if size is not None and size != have:
            raise CheckpointError(
                f"The network has {have} {what}, the {name} space {space} needs {size}.",
                where=where,
                fix=f"Give the right one with --{name}-space.",
            )
    findings = []
    for key, said, is_so in (
        ("vf_share_layers", settings.shares_layers, network.shares_layers),
        ("free_log_std", settings.free_log_std, network.free_log_std),
    ):
        if said != is_so:
            findings.append(
                Finding(
                    "network",
                    Severity.INFO,
                    Verdict.NOTE,
                    where,
                    f"the config says {key}={said}, the weights were made with {is_so} "
                    "(some Rays ignored the key); the weights are followed",
                )
            )
    return findings
