"""Actions for observations that come from outside, as `compute_action` gave them.

The observation takes the way that it takes in training: env-to-module connectors (preprocessing,
filter), the module, module-to-env connectors (sampling, unsquashing, clipping). Only the filter's
statistics stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from rllib_compat.neutral.errors import CompatError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import configs, connectors


@frozen
class Computed:
    """What was computed for one observation.

    Attributes:
        action: As the environment takes it.
        state: The recurrent state after it, as a flat list of arrays.
        extras: Logits, value predictions and the like, by today's and by the old names.
        raw: The action as the module gave it, neither unsquashed nor clipped.
    """

    action: Any
    state: list[Any]
    extras: dict[str, Any]
    raw: Any = None


@frozen
class Request:
    """One observation to act on, and what came before it."""

    observation: Any
    state: Sequence[Any] | None = None
    prev_action: Any = None
    prev_reward: Any = None
    info: Mapping[str, Any] | None = None


def compute(
    env_runner: Any,
    requests: Sequence[Request],
    policy_id: str,
    *,
    explore: bool,
    timestep: int,
    unsquash: bool,
    clip: bool,
) -> list[Computed]:
    """Computes one action a request.

    Args:
        env_runner: The local env runner, with weights and filters as they are to be used.
        requests: The observations.
        policy_id: The policy to ask.
        explore: Whether to sample from the action distribution, or to take its best.
        timestep: The env steps of the training so far; schedules of exploration want them.
        unsquash: Whether to scale actions from [-1, 1] to their space.
        clip: Whether to clip actions to their space.
    """
    multi_agent = configs.is_multi_agent(env_runner.config)
    module = _module(env_runner, policy_id) if multi_agent else env_runner.module
    agent = agent_of(env_runner, policy_id) if multi_agent else None
    episodes = [_episode(env_runner, module, agent, policy_id, request) for request in requests]
    shared: dict[str, Any] = {}
    to_module = connectors.env_to_module(env_runner)
    with connectors.frozen_statistics(to_module):
        batch = to_module(
            episodes=episodes,
            batch={},
            explore=explore,
            rl_module=env_runner.module,
            shared_data=shared,
            metrics=None,
        )
    if explore:
        out = env_runner.module.forward_exploration(batch, t=timestep)
    else:
        out = env_runner.module.forward_inference(batch)
    out = connectors.module_to_env(env_runner)(
        rl_module=env_runner.module,
        batch=out,
        episodes=episodes,
        explore=explore,
        shared_data=shared,
        metrics=None,
    )
    if not multi_agent:
        # A vector environment takes the parts of Tuple and Dict actions as batches.
        from ray.rllib.utils.spaces.space_utils import unbatch

        out |= {name: unbatch(out[name]) for name in ("actions", "actions_for_env") if name in out}
    found = [
        _computed({name: column[i] for name, column in out.items()}, agent)
        for i in range(len(requests))
    ]
    # The connectors do what the config says.
    config = env_runner.config
    if (unsquash, clip) == (bool(config.normalize_actions), bool(config.clip_actions)):
        return found
    return [
        replace(one, action=fitted(one.raw, module.action_space, unsquash, clip)) for one in found
    ]


def _module(env_runner: Any, policy_id: str) -> Any:
    if policy_id not in env_runner.module:
        raise CompatError(
            f"There is no policy {policy_id!r}.",
            where=f"compute_action(policy_id={policy_id!r})",
            fix=f"the policies are {', '.join(map(repr, env_runner.module.keys()))}",
        )
    return env_runner.module[policy_id]


def compute_on_old_stack(
    algorithm: Any, requests: Sequence[Request], policy_id: str, **options: Any
) -> list[Computed]:
    """Computes one action a request, as the old API stack still does itself."""
    return [
        Computed(
            *algorithm.compute_single_action(
                request.observation,
                list(request.state or []),
                prev_action=request.prev_action,
                prev_reward=request.prev_reward,
                info=request.info,
                policy_id=policy_id,
                full_fetch=True,
                **options,
            )
        )
        for request in requests
    ]


def _episode(env_runner: Any, module: Any, agent: Any, policy_id: str, request: Request) -> Any:
    """An episode with the observation last, behind what a state and actions before tell of."""
    observations, actions, rewards, outputs = [request.observation], [], [], {}
    infos = [dict(request.info or {})]
    if request.state or request.prev_action is not None:
        given = 0.0 if request.prev_reward is None else request.prev_reward
        action, space = request.prev_action, module.action_space
        if action is None:
            action = space.sample()
        # Attention nets may see several steps before; actions of several parts, they don't.
        several = space.shape is not None and np.ndim(action) > len(space.shape)
        actions = list(action) if several else [action]
        rewards = np.atleast_1d(given).tolist()
        # Nets that see more of one than of the other don't look at what is added.
        lacking = len(actions) - len(rewards)
        rewards, actions = [0.0] * lacking + rewards, actions[:1] * -lacking + actions
        observations, infos = observations * (len(rewards) + 1), infos * (len(rewards) + 1)
        if request.state:
            import tree

            template = module.get_initial_state()
            state = tree.unflatten_as(template, list(request.state))
            outputs = {"state_out": [state] * len(rewards)}
    if agent is None:
        return _single_agent(env_runner, observations, infos, actions, rewards, outputs)
    return _multi_agent(
        agent, policy_id, env_runner, observations, infos, actions, rewards, outputs
    )


def _single_agent(
    env_runner: Any, observations: Any, infos: Any, actions: Any, rewards: Any, outputs: Any
) -> Any:
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    pipeline = connectors.env_to_module(env_runner)
    return SingleAgentEpisode(
        observations=observations,
        infos=infos,
        actions=actions,
        rewards=rewards,
        extra_model_outputs=outputs,
        observation_space=pipeline.input_observation_space,
        action_space=pipeline.input_action_space,
        len_lookback_buffer=0,
    )


def _multi_agent(
    agent: Any,
    policy_id: str,
    env_runner: Any,
    observations: Any,
    infos: Any,
    actions: Any,
    rewards: Any,
    outputs: Any,
) -> Any:
    from ray.rllib.env.multi_agent_episode import MultiAgentEpisode

    pipeline = connectors.env_to_module(env_runner)
    return MultiAgentEpisode(
        observations=[{agent: value} for value in observations],
        infos=[{agent: value} for value in infos],
        actions=[{agent: value} for value in actions],
        rewards=[{agent: value} for value in rewards],
        extra_model_outputs=[
            {agent: {name: values[i] for name, values in outputs.items()}}
            for i in range(len(actions))
        ],
        observation_space=pipeline.input_observation_space,
        action_space=pipeline.input_action_space,
        agent_to_module_mapping_fn=lambda *_, **__: policy_id,
        len_lookback_buffer=0,
    )


def agent_of(env_runner: Any, policy_id: str, mapping: Callable[..., str] | None = None) -> Any:
    """An agent that the policy acts for: filters of today are kept by agent, not by policy.

    Mappings may look at the episode, and have no agent for some policy at the moment (an opponent
    that waits in a league). Then it is an agent that acts as the policy does.

    Args:
        env_runner: The local env runner.
        policy_id: The policy.
        mapping: The mapping from agents to policies, if not that of the runner.
    """
    pipeline = connectors.env_to_module(env_runner)
    agents = list(pipeline.input_observation_space.spaces)
    mapping = mapping or env_runner.config.policy_mapping_fn
    for agent in agents:
        with suppress(AttributeError, TypeError):  # there is no episode to look at
            if mapping(agent, None) == policy_id:
                return agent
    module = env_runner.module.get(policy_id)
    actions = pipeline.input_action_space.spaces
    return next((a for a in agents if module and actions[a] == module.action_space), agents[0])


def _computed(outputs: dict[str, Any], agent: Any) -> Computed:
    import tree

    if agent is not None:
        outputs = {name: by_agent[agent] for name, by_agent in outputs.items() if agent in by_agent}
    raw = outputs.pop("actions")
    action = outputs.pop("actions_for_env", raw)
    state = [np.asarray(s) for s in tree.flatten(outputs.pop("state_out", []))]
    if "action_logp" in outputs:
        outputs["action_prob"] = np.exp(outputs["action_logp"])
    return Computed(action, state, outputs, raw)


def fitted(action: Any, space: Any, unsquash: bool, clip: bool) -> Any:
    """The module's action as the environment gets it; unsquashed ones need no clipping."""
    from ray.rllib.utils.spaces import space_utils

    struct = space_utils.get_base_struct_from_space(space)
    if unsquash:
        return space_utils.unsquash_action(action, struct)
    return space_utils.clip_action(action, struct) if clip else action
