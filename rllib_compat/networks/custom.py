"""A user's own model: its weights go into an RLModule that the user names.

The old model is code, and code of a checkpoint is not run. So nothing here knows what either model
computes. Arrays are matched by name and shape, all of them or none; that they are equal is what
can be proven.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rllib_compat.networks import custom_module, custom_unnamed, refusals
from rllib_compat.networks.custom_module import has_parts
from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import AS_IS, CHANNELS_FIRST, Move, to_canonical
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.network import CustomNetwork, Reading, Target
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, MissingInformationError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.records import GlobalRef, StandIn
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Space

#: What is said of a user's module until a recording was compared with it.
UNSETTLED = "; only a recording of the old Ray shows that it computes what the old model did"

KIND = "custom model"

#: Where a legacy config tells of a custom model.
_KEYS = ("custom_model", "custom_model_config", "custom_options")

_TORCH = {"kernel": "weight"}

_FIX = (
    "Write it as an RLModule, and give the class: --model my_package.my_module:MyRLModule (Python: "
    "model=). `--write-model FILE.py` writes one if it is a plain chain of layers. `--to msgpack` "
    "keeps the weights by name."
)


@frozen
class CustomModel:
    """What the user gives for a custom model.

    Attributes:
        module: The RLModule's class, as `module:Class`.
        names: The module's name for each array of the old model, where they differ.
        everywhere: Whether policies have it whose config names no custom model.
        in_parts: Whether a Dict or Tuple can reach the module in parts; not where it has to be one
            vector for another policy's network.
    """

    module: str
    names: Mapping[str, str]
    everywhere: bool = False
    in_parts: bool = True


def is_custom(policy: PolicyState, settings: ModelSettings) -> bool:
    """Whether a policy's network is a user's: a model of the old API, or a module of the new."""
    own = policy.policy_class or ""
    foreign = policy.is_module and not own.startswith(("ray.rllib.", "rllib_compat."))
    return settings.custom_model is not None or foreign


def refusal(policy: PolicyState, settings: ModelSettings) -> MissingInformationError:
    """The error where no module was given."""
    model = settings.custom_model or policy.policy_class
    if isinstance(model, (GlobalRef, StandIn)):
        model = getattr(model, "class_name", None) or model.qualified
    return MissingInformationError(
        f"Policy {policy.policy_id} has the custom model {model}, which is your own code. It is "
        "neither imported nor run.",
        where=f"policies.{policy.policy_id}.model.custom_model",
        fix=_FIX,
    )


def read(policy: PolicyState, settings: ModelSettings, model: CustomModel | None) -> Reading:
    """Matches a policy's arrays with those of the user's module.

    Raises:
        MissingInformationError: The module, or a space, has to be given.
        CheckpointError: Arrays are left on either side, or have other shapes.
    """
    where = f"policies.{policy.policy_id}"
    if model is None:
        raise refusal(policy, settings)
    if not isinstance(policy.weights, (dict, list)):
        raise CheckpointError(
            "The weights of this Ray have no names, so that they can't be matched.", where=where
        )
    if policy.observation_space is None or policy.action_space is None:
        raise refusals.needed(
            "The module is built with the policy's spaces, which are not known.", "both", where
        )
    model_config = _model_config(settings)
    in_parts = model.in_parts and not _is_filtered(policy)
    built = custom_module.build(model.module, policy, model_config, in_parts=in_parts)
    wanted, names = built.shapes, model.names
    if keras := isinstance(policy.weights, list):
        old, state = custom_unnamed.named(policy), dict[str, float]()
        if "0" in old:
            names = custom_unnamed.places(old, wanted, model.names)
    else:
        old, state = plain_names(policy)
    moves = tuple(_move(name, array, wanted, names, keras=keras) for name, array in old.items())
    arrays, _ = to_canonical(moves, old)
    _require_match(arrays, wanted, {m.ours: m.theirs for m in moves}, model.module, where)
    network = CustomNetwork(
        kind=KIND,
        summary=f"{model.module}, {len(arrays)} arrays",
        scheme="custom",
        arrays=arrays,
        target=Target(model.module, model_config, tuple(Move(n, n) for n in arrays)),
        names=moves,
        inputs=inputs_of(policy),
        space=built.space,
    )
    finding = Finding(
        "custom-model",
        Severity.WARNING,
        Verdict.NOTE,
        f"{where}.weights",
        f"the weights went into {model.module} {_told(old, built.space)}{UNSETTLED}",
        "give --recorded FILE (`rllib-compat recorder` prints what makes one)",
    )
    return Reading(network, (finding,), state)


def _is_filtered(policy: PolicyState) -> bool:
    """Whether a filter saw the observations; it had them in one vector."""
    return policy.observation_filter is not None and bool(policy.observation_filter.stats)


def _told(old: Mapping[str, Array], space: Space) -> str:
    """How arrays found their places, and what the module takes."""
    how = "by shape, as they have no names" if "0" in old else "by name"
    return how + (", and it takes observations in parts" if has_parts(space) else "")


def without_custom_model(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config that asks for no custom model: the module is told to the new one."""
    model = config.get("model")
    if not isinstance(model, Mapping):
        return dict(config)
    return {**config, "model": {k: v for k, v in model.items() if k not in _KEYS}}


def inputs_of(policy: PolicyState) -> tuple[int, ...]:
    """The shape of the preprocessed observation."""
    space = policy.observation_space
    assert space is not None
    return space.shape if isinstance(space, spaces.Box) else (space.flat_size(),)


def _model_config(settings: ModelSettings) -> dict[str, Any]:
    """What the user told the old model: `custom_options` until Ray 0.8.4."""
    if settings.custom_model is None:
        return dict(settings.model)
    return {**_custom(settings, "custom_options"), **_custom(settings)}


def _custom(settings: ModelSettings, key: str = "custom_model_config") -> dict[str, Any]:
    told = settings.model.get(key) or {}
    if not isinstance(told, Mapping):
        raise CheckpointError(
            f"The config's {key!r} should be a dict, and is {repr(told)[:80]}.",
            where=f"config.model.{key}",
            fix="Give the config that was trained with: --config params.json.",
        )
    return dict(told)


def _move(
    name: str,
    array: Array,
    wanted: Mapping[str, tuple[int, ...]],
    names: Mapping[str, str],
    *,
    keras: bool,
) -> Move:
    """The row of one array: its name in the module, and whether it has to be transposed.

    TensorFlow kept kernels as `[in, out]`; its names have slashes. `enc/kernel` is `enc.weight`.
    """
    of_tensorflow = keras or "/" in name
    guess = name
    if of_tensorflow and name not in wanted:
        layer, _, part = name.replace("/", ".").rpartition(".")
        guess = f"{layer}.{_TORCH.get(part, part)}"
    new = names.get(name, guess)
    turned = of_tensorflow and array.ndim in (2, 4)
    return Move(name, new, CHANNELS_BACK if turned else AS_IS)


#: From TensorFlow's kernels to torch's; `CHANNELS_FIRST` is the other direction.
CHANNELS_BACK = replace(CHANNELS_FIRST, there=CHANNELS_FIRST.back, back=CHANNELS_FIRST.there)


def _require_match(
    arrays: Mapping[str, Array],
    wanted: Mapping[str, tuple[int, ...]],
    old_names: Mapping[str, str],
    module: str,
    where: str,
) -> None:
    left = sorted(old_names[name] for name in arrays if name not in wanted)
    empty = sorted(name for name in wanted if name not in arrays)
    odd = sorted(
        f"{old_names[n]} {arrays[n].shape} and {n} {wanted[n]}"
        for n in arrays
        if n in wanted and arrays[n].shape != wanted[n]
    )
    if not (left or empty or odd):
        return
    parts = [f"without a place in the module: {', '.join(left)}"] if left else []
    parts += [f"without weights in the checkpoint: {', '.join(empty)}"] if empty else []
    parts += [f"of different shapes: {'; '.join(odd)}"] if odd else []
    raise CheckpointError(
        f"The arrays of the old model and of {module} do not match: {'; '.join(parts)}.",
        where=where,
        fix="Name them alike, or give --weights-map file.json with {old name: new name}.",
    )
