"""A user's own model: its weights go into an RLModule that the user names.

The old model is code, and code of a checkpoint is not run. So nothing here knows what either model
computes. Arrays are matched by name and shape, all of them or none; that they are equal is what
can be proven.

A TensorFlow 2 model is stored as a list. Keras' optimizer, where it is stored, has two moments for
each array, with the array's name, in the order of the list. Otherwise an array goes to the only
place of its shape. Dense layers and convolutions are moved whole: a kernel and the bias behind it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import AS_IS, CHANNELS_FIRST, Move, to_canonical
from rllib_compat.networks.named import plain_names
from rllib_compat.networks.network import CustomNetwork, Reading, Target
from rllib_compat.networks.optimizers import eager_variables
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, MissingInformationError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import import_attribute
from rllib_compat.neutral.records import GlobalRef, StandIn
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Box, DictSpace, Space, TupleSpace
from rllib_compat.ray_versions import startup

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.rl_module import RLModule


@frozen
class Built:
    """What a module is, once it is built.

    Attributes:
        space: What it takes: the policy's observations as they are, or all of them in one vector.
        shapes: The shapes of its arrays, by name.
    """

    space: Space
    shapes: Mapping[str, tuple[int, ...]]


def build_module(
    name: str, policy: PolicyState, model_config: Mapping[str, Any], *, in_parts: bool
) -> Built:
    """Builds a user's module, named as `module:Class`, with the spaces of a policy.

    Models of the old API found a Dict or Tuple both in parts (`input_dict["obs"]`) and as one
    vector (`input_dict["obs_flat"]`). A module is given the parts if it computes with them, and the
    vector otherwise.

    Raises:
        CheckpointError: It can't be imported, built, or computed.
    """
    cls = _import(name)
    seen = policy.observation_space
    assert seen is not None
    flat = seen if isinstance(seen, Box) else spaces.box(-np.inf, np.inf, (seen.flat_size(),))
    tried = [seen, flat] if in_parts and has_parts(seen) else [flat]
    failed = []
    for space in tried:
        try:
            module = _built(cls, space, policy, model_config)
            if len(tried) > 1:
                _compute(module)
        except Exception as error:  # it is the user's code, which may raise anything
            shown = "in parts" if space is not flat else f"of the shape {flat.shape}"
            failed.append(f"with observations {shown}: {type(error).__name__}: {error}")
        else:
            arrays = {str(k): tuple(np.shape(v)) for k, v in module.get_state().items()}
            return Built(space, arrays)
    raise CheckpointError(
        f"The module {name} cannot be built and run {'; '.join(failed)}.",
        where="--model",
        fix="Create its layers in `setup()`, from `self.observation_space`, "
        "`self.action_space` and `self.model_config`.",
    )


def has_parts(space: Space | None) -> bool:
    """Whether observations of a space come in parts."""
    return isinstance(space, (DictSpace, TupleSpace))


def _import(name: str) -> Any:
    """The class that the user named; never one that a checkpoint names."""
    module, colon, cls = name.partition(":")
    try:
        if not colon:
            raise ImportError("it is not written as module:Class")
        return import_attribute(module, cls)
    except ImportError as error:
        raise CheckpointError(
            f"The module {name!r} can't be imported ({error}).",
            where="--model",
            fix="Pass it as my_package.my_module:MyRLModule, and add its folder to PYTHONPATH.",
        ) from error


def _built(cls: object, space: Space, policy: PolicyState, model_config: Mapping[str, Any]) -> Any:
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    assert policy.action_space is not None
    spec = RLModuleSpec(
        module_class=cls,
        observation_space=spaces.to_gymnasium(space),
        action_space=spaces.to_gymnasium(policy.action_space),
        model_config=dict(model_config),
    )
    with startup.quiet_logs():
        return spec.build()


def _compute(module: RLModule) -> None:
    """Computes two observations of the module's space, unless they need states as well."""
    import torch
    import tree

    if module.get_initial_state():
        return
    seen = [module.observation_space.sample() for _ in range(2)]
    batch = tree.map_structure(lambda *rows: torch.as_tensor(np.stack(rows)), *seen)
    with torch.no_grad():
        module.forward_inference({"obs": batch})


_MEAN = re.compile(r"(.+)/m")

#: A layer: the names of its arrays; and what identifies it: their shapes in torch.
_Names = tuple[str, ...]
_Shapes = tuple[tuple[int, ...], ...]


def named_list(policy: PolicyState) -> dict[str, Array]:
    """A policy's list of arrays by the names that its optimizer has for them, or by number."""
    arrays = [np.asarray(array) for array in policy.weights]
    names = list(_names_of_optimizer(policy, arrays))
    if len(set(names)) != len(arrays):
        names = [str(number) for number in range(len(arrays))]
    return dict(zip(names, arrays, strict=True))


def _names_of_optimizer(policy: PolicyState, arrays: list[Array]) -> Iterable[str]:
    stored: Any = policy.optimizer
    while isinstance(stored, list) and len(stored) == 1 and isinstance(stored[0], list):
        (stored,) = stored
    if not isinstance(stored, list):
        return []
    try:
        variables = eager_variables(stored, policy)
    except CheckpointError:
        return []
    means = {match[1]: v for name, v in variables.items() if (match := _MEAN.fullmatch(name))}
    same = [mean.shape for mean in means.values()] == [array.shape for array in arrays]
    return means if same else []


def places_by_shape(
    old: Mapping[str, Array], wanted: Mapping[str, tuple[int, ...]], given: Mapping[str, str]
) -> dict[str, str]:
    """The module's name for each array of a list: the given one, or where its shape leaves one.

    Raises:
        CheckpointError: Several arrays fit several places.
    """
    layers = _layers_by_number([k for k in old if k not in given], old)
    free = {k: np.empty(shape) for k, shape in wanted.items() if k not in given.values()}
    there = _layers_by_name(free)
    found = dict(given)
    for shapes, theirs in layers.items():
        ours = there.get(shapes, [])
        if len(ours) > 1 or (ours and len(theirs) > 1):
            numbers = " and ".join(names[0] for names in theirs)
            raise CheckpointError(
                "The weights have no names, and arrays of the same shape are ambiguous: "
                f"{numbers} of the list may be {' or '.join(names[0] for names in ours)}.",
                where="--model",
                fix=f'Say which is which: --weights-map \'{{"{theirs[0][0]}": "{ours[0][0]}"}}\'; '
                "`rllib-compat inspect OLD --arrays` lists them.",
            )
        if ours:
            found.update(zip(theirs[0], ours[0], strict=True))
    return found


def _layers_by_number(names: list[str], arrays: Mapping[str, Array]) -> dict[_Shapes, list[_Names]]:
    """Kernels with the bias behind them, and what else there is, by their shapes in torch."""
    made: dict[_Shapes, list[_Names]] = defaultdict(list)
    rest = list(names)
    while rest:
        first = rest.pop(0)
        layer = [first]
        if arrays[first].ndim > 1 and rest and arrays[rest[0]].shape == arrays[first].shape[-1:]:
            layer.append(rest.pop(0))
        made[tuple(CHANNELS_FIRST.back(arrays[k]).shape for k in layer)].append(tuple(layer))
    return made


def _layers_by_name(arrays: Mapping[str, Array]) -> dict[_Shapes, list[_Names]]:
    """The same of a torch module: `enc.weight` and `enc.bias` are a layer."""
    made: dict[_Shapes, list[_Names]] = defaultdict(list)
    for name in arrays:
        layer, _, part = name.rpartition(".")
        if part == "bias" and f"{layer}.weight" in arrays:
            continue
        bias = f"{layer}.bias"
        names = (name, bias) if part == "weight" and bias in arrays else (name,)
        made[tuple(arrays[k].shape for k in names)].append(names)
    return made


#: What is said of a user's module until a recording was compared with it.
UNSETTLED = "; only a recording of the old Ray shows that it computes what the old model did"

KIND = "custom model"

#: Where a legacy config names a custom model.
_KEYS = ("custom_model", "custom_model_config", "custom_options")

_TORCH = {"kernel": "weight"}

_FIX = (
    "Write it as an RLModule, and give the class: --model my_package.my_module:MyRLModule. "
    "`rllib-compat convert OLD NEW --write-model FILE.py` writes one if it is a plain chain of "
    "layers. `--to msgpack` keeps the weights by name."
)

_FIX_MODULE = (
    "Give the RLModule's class, which builds the same layers: --model {model}. "
    "`--to msgpack` keeps the weights by name."
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
    is_module = policy.is_module and settings.custom_model is None
    what = "custom RLModule (or catalog)" if is_module else "custom model"
    return MissingInformationError(
        f"Policy {policy.policy_id} has the {what} {model}, which is your own code and is neither "
        "imported nor executed.",
        where=f"policies.{policy.policy_id}.model.custom_model",
        fix=_FIX_MODULE.format(model=_option(str(model))) if is_module else _FIX,
    )


def _option(name: str) -> str:
    """What `--model` may be for a class of this name; a main module's has no other."""
    module, _, cls = name.rpartition(".")
    known = module and not cls.endswith("Catalog")
    return f"{module}:{cls}" if known else "my_package.my_module:MyRLModule"


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
            "This Ray's weights have no names, so they cannot be matched to the module's.",
            where=where,
            fix=refusals.KEEPS,
        )
    if policy.observation_space is None or policy.action_space is None:
        raise refusals.needed(
            "The module is built with the policy's spaces, which are not known.", "both", where
        )
    model_config = _model_config(settings)
    filtered = policy.observation_filter is not None and bool(policy.observation_filter.stats)
    in_parts = model.in_parts and not filtered  # a filter had observations in one vector
    built = build_module(model.module, policy, model_config, in_parts=in_parts)
    wanted, names = built.shapes, model.names
    if keras := isinstance(policy.weights, list):
        old, state = named_list(policy), dict[str, float]()
        if "0" in old:
            names = places_by_shape(old, wanted, model.names)
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
    finding = Finding.warning(
        "custom-model",
        Verdict.NOTE,
        f"{where}.weights",
        f"the weights went into {model.module} {_told(old, built.space)}{UNSETTLED}",
        "pass --recorded FILE (`rllib-compat recorder` prints what makes one)",
    )
    return Reading(network, (finding,), state)


def _told(old: Mapping[str, Array], space: Space) -> str:
    """How arrays found their places, and what the module takes."""
    how = "by shape, as they have no names" if "0" in old else "by name"
    return how + (", and it takes observations in parts" if has_parts(space) else "")


def without_custom_model(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without the custom model: the new Ray gets the module itself."""
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
    """The user's arguments of the old model: `custom_options` until Ray 0.8.4."""
    if settings.custom_model is None:
        return dict(settings.model)
    return {**_custom(settings, "custom_options"), **_custom(settings)}


def _custom(settings: ModelSettings, key: str = "custom_model_config") -> dict[str, Any]:
    options = settings.model.get(key) or {}
    if not isinstance(options, Mapping):
        raise CheckpointError(
            f"The config's {key!r} should be a dict, and is {repr(options)[:80]}.",
            where=f"config.model.{key}",
            fix="Pass the config of the training: --config params.json.",
        )
    return dict(options)


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
        fix="Use the same names, or pass --weights-map file.json with {old name: new name}.",
    )
