"""Reads SAC's networks where they are models of the catalog with convolutions (Ray 1.3 on).

Each stack is a model like an actor-critic policy's: of the observation, or (a critic of continuous
actions) of the observation and the action as a Tuple. So each is built like one, without its value
function, and its graph becomes a part of SAC's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rllib_compat.networks.graph import Array, Builder, Graph, Step
from rllib_compat.networks.heads import vision
from rllib_compat.networks.mapping import Move, Table, to_canonical
from rllib_compat.networks.named import Named
from rllib_compat.networks.names.actor_critic import COMPLEX_SCHEMES, VISION_SCHEMES
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.names.sac import LOG_ALPHA, is_scalar
from rllib_compat.networks.names.sac_arrays import model_of
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.stacks import CRITIC, POLICY, TWIN
from rllib_compat.networks.trunks.complex import COMPLEX, dead_names
from rllib_compat.networks.trunks.components import original_space
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import MissingInformationError, NotConvertibleError, NotYetError
from rllib_compat.neutral.spaces import Box, Space, TupleSpace

_MODULES = {POLICY: "action_model.", CRITIC: "q_net.", TWIN: "twin_q_net."}
_OUTPUTS = {POLICY: "action_dist_inputs", CRITIC: "q_values", TWIN: "twin_q_values"}

#: Parts of models that are not only dense layers, on torch and on TensorFlow.
_NOT_DENSE = re.compile(
    r"(action_model|q_net)\.(_convs|cnn|one_hot|flatten|post_fc_stack|logits_layer).*"
    r"|conv\d+(_\d+)?/.*"
)

#: keras' names of layers, and how often it had met them before.
_COUNTED = re.compile(
    r"(?P<layer>conv\d+|conv_out|conv_value_\d+|conv_value_out|post_fcnet_\d+|fc_value_\d+|fc_\d+"
    r"|fc_out|value_out|logits)(_\d+)?/(?P<part>kernel|bias)"
)


@dataclass(frozen=True)
class Models:
    """SAC's stacks, read as models.

    Attributes:
        arrays: By canonical name, `<stack>.<name in the model>`.
        table: The names they had, one row each.
        unused: The names of arrays that no output depends on.
        graph: What they compute together.
        summary: One line for tables.
        lost: Why there are no critics; empty where they are whole.
    """

    arrays: dict[str, Array]
    table: Table
    unused: tuple[str, ...]
    graph: Graph
    summary: str
    lost: str = ""


def has_models(policy: PolicyState) -> bool:
    """Whether a policy's stacks are models with more than dense layers."""
    if not isinstance(policy.weights, dict):
        return False
    return any(_NOT_DENSE.fullmatch(name) for name in plain_names(policy)[0])


def read_models(policy: PolicyState, settings: ModelSettings) -> Models:
    """Reads each stack as a model.

    Where some layers of the critics were never saved (Ray 1.10 – 2.2 on torch), the policy is read
    alone.

    Raises:
        NotYetError: A model is not one that can be converted; it is named.
        NotConvertibleError: Layers of the policy were never saved.
        MissingInformationError: A space has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    actions = _continuous(policy)
    observed = original_space(policy.observation_space)
    parts = not isinstance(observed, Box)
    kinds = {POLICY: parts, CRITIC: parts or actions is not None}
    plain, _ = plain_names(policy)
    torch = any(name.startswith("q_net.") for name in plain)
    split = _split_torch(plain) if torch else _split_keras(list(plain), kinds)
    lost = ""
    arrays: dict[str, Array] = {}
    rows: list[Move] = []
    graphs: dict[str, Graph] = {}
    for stack, names in split.items():
        online = stack.removeprefix(TARGET_PREFIX)
        is_complex = kinds[POLICY if online == POLICY else CRITIC]
        inner = {within: plain[name] for name, within in names.items()}
        own = _as_policy(policy, inner, online, actions)
        found, table = _canonical(own, is_complex=is_complex, torch=torch)
        try:
            if online not in graphs:
                told = _settings(settings, online)
                graphs[online] = _model(own, found, told, is_complex=is_complex)
        except NotConvertibleError as error:
            if online == POLICY:
                raise
            lost = error.found
            continue
        wanted = {step.name for step in graphs[online].steps}
        for name, within in names.items():
            row = table.get(within)
            if row and row.ours.rpartition(".")[0] in wanted and stack != TARGET_PREFIX + POLICY:
                rows.append(replace(row, theirs=name, ours=f"{stack}.{row.ours}"))
                arrays[rows[-1].ours] = found[row.ours]
    taken = {row.theirs for row in rows}
    scalars = {name for name in plain if plain[name].size == 1 and _is_number(name)}
    unused = tuple(name for name in plain if name not in taken | scalars)
    kind = {True: "complex input", False: "vision"}
    critics = "no critics" if lost else f"critics of {kind[kinds[CRITIC]]}"
    summary = f"sac, policy of {kind[kinds[POLICY]]}, {critics}"
    return Models(arrays, tuple(rows), unused, _graph(graphs, actions), summary, lost)


def _is_number(name: str) -> bool:
    return is_scalar(name, LOG_ALPHA) or name == "target_entropy"


def _continuous(policy: PolicyState) -> Box | None:
    """The space of continuous actions, or None for discrete ones."""
    for what, space in (("action", policy.action_space), ("observation", policy.observation_space)):
        if space is None:
            raise MissingInformationError(
                f"The {what} space is needed to tell what goes into policy and critics.",
                where=f"policies.{policy.policy_id}.{what}_space",
                fix=f"Give --{what}-space 'Box(-1, 1, (2,))' or --env.",
            )
    return policy.action_space if isinstance(policy.action_space, Box) else None


def _split_torch(plain: Mapping[str, Array]) -> dict[str, dict[str, str]]:
    """The names of each stack's arrays, and what its model called them."""
    split: dict[str, dict[str, str]] = {}
    for stack, module in _MODULES.items():
        names = {name: name.removeprefix(module) for name in plain if name.startswith(module)}
        if names:
            split[stack] = names
    return split


def _split_keras(names: list[str], complex_: Mapping[str, bool]) -> dict[str, dict[str, str]]:
    """The same of TensorFlow: models in the order in which they were made, names counted up.

    A model ends with its value function; one for complex observations has some inside, too, and
    ends with the one behind its `logits`.
    """
    end = next((i for i, name in enumerate(names) if is_scalar(name, LOG_ALPHA)), len(names))
    split: dict[str, dict[str, str]] = {}
    for target, half in (("", names[:end]), (TARGET_PREFIX, names[end + 1 :])):
        stacks = iter((POLICY, CRITIC, TWIN))
        stack, within, heads = next(stacks), {}, False
        counts: dict[str, int] = {}
        for name in half:
            match = _COUNTED.fullmatch(name)
            if match is None:
                continue
            key = f"{match['layer']}/{match['part']}"
            number = counts.get(key, 0)
            counts[key] = number + 1
            within[name] = f"{match['layer']}{f'_{number}' if number else ''}/{match['part']}"
            heads |= match["layer"] == "logits"
            whole = heads or not complex_[POLICY if stack == POLICY else CRITIC]
            if key == "value_out/bias" and whole:
                split[target + stack] = within
                stack, within, heads, counts = next(stacks, TWIN), {}, False, {}
    return split


def _as_policy(
    policy: PolicyState, weights: dict[str, Array], stack: str, actions: Box | None
) -> PolicyState:
    """A stack as a policy; a critic sees the action, too."""
    seen: Space | None = policy.observation_space
    if stack != POLICY and actions is not None:
        observed = original_space(seen)
        seen = None if observed is None else TupleSpace((observed, actions))
    return PolicyState(policy.policy_id, weights, observation_space=seen)


def _settings(settings: ModelSettings, stack: str) -> ModelSettings:
    """The stack's own model, in the config of its algorithm."""
    own = model_of(settings, stack)
    return replace(own, config=settings.config, algorithm=settings.algorithm, ray=settings.ray)


def _canonical(
    policy: PolicyState, *, is_complex: bool, torch: bool
) -> tuple[dict[str, Array], dict[str, Move]]:
    """A model's arrays by canonical name, and the row of each by the name it had."""
    assert isinstance(policy.weights, dict)
    schemes = COMPLEX_SCHEMES if is_complex else VISION_SCHEMES
    table = schemes["torch" if torch else "keras"]
    dead = dead_names(policy.weights, heads=True) if is_complex else []
    kept = {name: array for name, array in policy.weights.items() if name not in dead}
    arrays, left = to_canonical(table, kept)
    if left:
        raise NotYetError(
            f"Not yet: {len(left)} of {len(policy.weights)} arrays belong to no "
            f"{'complex' if is_complex else 'vision'} network, for example {left[0]!r}.",
            where=f"policies.{policy.policy_id}.weights",
            fix="`--to msgpack` keeps all weights by name.",
        )
    rows = {row.theirs: row for row in _exact(table, kept)}
    return arrays, rows


def _exact(table: Table, named: Mapping[str, Array]) -> Iterator[Move]:
    """A row for each array alone."""
    for name, array in named.items():
        for move in table:
            if move.names[0].index_of(name) is not None:
                (canonical,) = to_canonical((move,), {name: array})[0]
                yield Move(name, canonical, move.change)
                break


def _model(
    policy: PolicyState, arrays: Mapping[str, Array], settings: ModelSettings, *, is_complex: bool
) -> Graph:
    """What a model computes, without its value function."""
    build = Builder()
    torch = any("_convs." in name for name in policy.weights)
    named = Named(policy, settings, arrays, "torch" if torch else "keras")
    if is_complex:
        inputs = COMPLEX.inputs(named)
        logits = build.add("dense", "logits", COMPLEX.add(build, named))
    else:
        inputs = require_image(policy, settings)
        heads = vision.Heads(named, build)
        heads.add_policy()
        logits = heads.logits
    graph = Graph({"obs": inputs}, tuple(build.steps), {"outputs": logits})
    return replace(graph, steps=graph.needed(["outputs"]))


def _graph(models: Mapping[str, Graph], actions: Box | None) -> Graph:
    """One graph of all models, each step with its stack's name before its own."""
    inputs = {"obs": models[POLICY].inputs["obs"]}
    build = Builder()
    both = "obs"
    if actions is not None:
        inputs["actions"] = (actions.flat_size(),)
        flat = build.add("flatten", "q_obs", "obs") if len(inputs["obs"]) == 3 else "obs"
        both = build.add("concat", "q_inputs", flat, "actions")
    outputs = {}
    for stack, model in models.items():
        taken = "obs" if stack == POLICY else both
        build.steps += [_within(step, stack, taken) for step in model.steps]
        outputs[_OUTPUTS[stack]] = f"{stack}.{model.outputs['outputs']}"
        if stack != POLICY and actions is not None:
            made = build.add("scalar", _OUTPUTS[stack], outputs[_OUTPUTS[stack]])
            outputs[_OUTPUTS[stack]] = made
    return Graph(inputs, tuple(build.steps), outputs)


def _within(step: Step, stack: str, observation: str) -> Step:
    takes = [observation if name == "obs" else f"{stack}.{name}" for name in step.takes]
    return replace(step, name=f"{stack}.{step.name}", takes=tuple(takes))
