"""SAC's networks where they are models of the catalog with convolutions (Ray 1.3 on).

Each stack is a model like an actor-critic policy's: of the observation, or (a critic of continuous
actions) of the observation and the action as a Tuple. So each is built like one, without its value
function, and its graph becomes a part of SAC's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rllib_compat.networks.graph import Builder, Graph, Step
from rllib_compat.networks.heads import vision
from rllib_compat.networks.heads.stacks import OUTPUTS
from rllib_compat.networks.named import Named
from rllib_compat.networks.names.sac import Trunks
from rllib_compat.networks.names.sac_unnamed import model_of
from rllib_compat.networks.names.stacks import POLICY
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.trunks.complex import COMPLEX
from rllib_compat.networks.trunks.components import original_space
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.networks.trunks.trunk import Trunk
from rllib_compat.neutral.errors import NotConvertibleError
from rllib_compat.neutral.spaces import Box, TupleSpace


def read(named: Named, trunks: Trunks) -> tuple[Named, Graph, str]:
    """Makes one graph of all stacks.

    Where some layers of the critics were never saved (Ray 1.10 – 2.2 on torch), the policy is read
    alone.

    Returns:
        The arrays that are used, the graph, and why there are no critics (empty where they are).

    Raises:
        NotConvertibleError: Layers of the policy were never saved.
        CheckpointError: The weights and the config contradict each other.
    """
    models: dict[str, Graph] = {}
    lost = ""
    for stack in (stack for stack in OUTPUTS if _has(named, stack)):
        try:
            models[stack] = _model(_of_stack(named, stack), trunks[stack])
        except NotConvertibleError as error:
            if stack == POLICY:
                raise
            lost = error.found
    kept = [row for row in named.table if _stack_of(row.ours) in models]
    dropped = [row.theirs for row in named.table if row not in kept]
    arrays = {row.ours: named.arrays[row.ours] for row in kept}
    unused = (*named.unused, *dropped)
    return (
        replace(named, arrays=arrays, table=tuple(kept), unused=unused),
        _graph(named, models),
        lost,
    )


def _stack_of(name: str) -> str:
    return name.removeprefix(TARGET_PREFIX).partition(".")[0]


def _has(named: Named, stack: str) -> bool:
    return any(name.startswith(f"{stack}.") for name in named.arrays)


def _of_stack(named: Named, stack: str) -> Named:
    """A stack as a policy of its own, in its algorithm's config; a critic sees actions, too."""
    policy, settings = named.policy, named.settings
    seen, actions = policy.observation_space, policy.action_space
    if stack != POLICY and isinstance(actions, Box) and (observed := original_space(seen)):
        seen = TupleSpace((observed, actions))
    own = replace(
        model_of(settings, stack),
        config=settings.config,
        algorithm=settings.algorithm,
        ray=settings.ray,
    )
    prefix = f"{stack}."
    arrays = {k.removeprefix(prefix): v for k, v in named.arrays.items() if k.startswith(prefix)}
    return replace(
        named, policy=replace(policy, observation_space=seen), settings=own, arrays=arrays
    )


def _model(named: Named, trunk: Trunk) -> Graph:
    """What a model computes, without its value function."""
    build = Builder()
    if trunk is COMPLEX:
        inputs = COMPLEX.inputs(named)
        logits = build.add("dense", "logits", COMPLEX.add(build, named))
    else:
        inputs = require_image(named.policy, named.settings)
        heads = vision.Heads(named, build)
        heads.add_policy()
        logits = heads.logits
    graph = Graph({"obs": inputs}, tuple(build.steps), {"outputs": logits})
    return replace(graph, steps=graph.needed(["outputs"]))


def _graph(named: Named, models: Mapping[str, Graph]) -> Graph:
    """One graph of all models, each step with its stack's name before its own."""
    actions = named.policy.action_space
    inputs = {"obs": models[POLICY].inputs["obs"]}
    build = Builder()
    both = "obs"
    if isinstance(actions, Box):
        inputs["actions"] = (actions.flat_size(),)
        flat = build.add("flatten", "q_obs", "obs") if len(inputs["obs"]) == 3 else "obs"
        both = build.add("concat", "q_inputs", flat, "actions")
    outputs = {}
    for stack, model in models.items():
        taken = "obs" if stack == POLICY else both
        build.steps += [_within(step, stack, taken) for step in model.steps]
        outputs[OUTPUTS[stack]] = f"{stack}.{model.outputs['outputs']}"
        if stack != POLICY and isinstance(actions, Box):
            made = build.add("scalar", OUTPUTS[stack], outputs[OUTPUTS[stack]])
            outputs[OUTPUTS[stack]] = made
    return Graph(inputs, tuple(build.steps), outputs)


def _within(step: Step, stack: str, observation: str) -> Step:
    takes = [observation if name == "obs" else f"{stack}.{name}" for name in step.takes]
    return replace(step, name=f"{stack}.{step.name}", takes=tuple(takes))
