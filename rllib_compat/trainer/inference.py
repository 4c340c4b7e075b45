"""`compute_action` and similar methods: actions for observations of the environment.

An observation is processed as in training: env-to-module connectors (preprocessing, filter), the
module, module-to-env connectors (sampling, unsquashing, clipping). Only the filter's statistics do
not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rllib_compat.neutral.errors import CompatError, ObservationError, UnknownPolicyError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.recurrent_state import checked_state, is_given
from rllib_compat.ray_versions import configs, connectors, modules
from rllib_compat.runtime.policy_inputs import check_state, nest_state, state_after_step
from rllib_compat.runtime.policy_mapping import ONLY_POLICY, resolve_policy_id
from rllib_compat.trainer.running import RunningAlgorithm

if TYPE_CHECKING:
    import gymnasium
    from ray.rllib.core.rl_module import RLModule
    from ray.rllib.env.env_runner import EnvRunner
    from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

#: An observation or an action: an array, a number, or a structure of them.
Struct: TypeAlias = object


@frozen
class ComputedAction:
    """The action for one observation.

    Attributes:
        action: As the environment takes it.
        state: The recurrent state after it, as a flat list of arrays.
        extras: Logits, value predictions and similar outputs, by their new and their old names.
        raw: The action of the module, neither unsquashed nor clipped.
    """

    action: Any
    state: list[Any]
    extras: dict[str, Any]
    raw: Any = None


@frozen
class Request:
    """One observation, and the steps before it.

    Attributes:
        views: All of it by name, if a model has its own view requirements.
    """

    observation: Any
    state: Any = None
    prev_action: Any = None
    prev_reward: Any = None
    info: Mapping[str, Any] | None = None
    views: Mapping[str, Any] | None = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of `compute_single_action` of Ray's old API stack."""
        if self.views is not None:
            return {"input_dict": dict(self.views)}
        return {
            "observation": self.observation,
            "state": list(self.state) if is_given(self.state) else [],
            "prev_action": self.prev_action,
            "prev_reward": self.prev_reward,
            "info": self.info,
        }


class Inference:
    """Computes actions with the policies of an algorithm."""

    def __init__(self, running: RunningAlgorithm) -> None:
        self._running = running

    def compute_single_action(
        self,
        observation: Struct = None,
        state: Sequence[Any] | None = None,
        prev_action: Struct = None,
        prev_reward: float | None = None,
        info: Mapping[str, Any] | None = None,
        policy_id: str = ONLY_POLICY,
        full_fetch: bool = False,
        explore: bool | None = None,
        *,
        input_dict: Mapping[str, Any] | None = None,
        timestep: int | None = None,
        episode: object = None,  # noqa: ARG002  # only custom policies read it
        unsquash_action: bool | None = None,
        clip_action: bool | None = None,
        unsquash_actions: bool | None = None,
        clip_actions: bool | None = None,
    ) -> Any:
        """Computes the action for one observation of the environment.

        The observation is preprocessed and filtered (without changing the filter's statistics),
        and the action is unsquashed or clipped, as in training.

        Args:
            observation: As the environment gives it.
            state: The recurrent state before, as a flat list of arrays; of attention, the last
                outputs `[memory, size]` of each unit, of which each call returns the next one.
            prev_action: The action before, for models that use it; an array of the last ones,
                oldest first, for attention nets that use several.
            prev_reward: The reward before, likewise.
            info: The environment's info.
            policy_id: The policy.
            full_fetch: Whether to return state and extras as well.
            explore: Whether to sample; None for the config's value.
            input_dict: `obs`, `state_in_0`, `prev_actions`, `prev_rewards` by name, instead of the
                arguments above.
            timestep: The env steps so far, for schedules of exploration; None for the training's.
            episode: Ignored.
            unsquash_action: Whether to scale the action from [-1, 1] to its space; None for the
                config's value.
            clip_action: Whether to clip the action to its space; None for the config's value.
            unsquash_actions: The same by its name of Ray 1.6.
            clip_actions: The same by its name of Ray 1.6.

        Returns:
            The action; with `state` or `full_fetch`: (action, state, extras).
        """
        if input_dict is not None:
            request = _request_of(input_dict)
        else:
            request = Request(observation, state, prev_action, prev_reward, info)
        (computed,) = self.compute(
            [request],
            policy_id,
            explore=explore,
            timestep=timestep,
            unsquash=unsquash_action if unsquash_actions is None else unsquash_actions,
            clip=clip_action if clip_actions is None else clip_actions,
        )
        if is_given(request.state) or full_fetch:
            return computed.action, computed.state, computed.extras
        return computed.action

    def compute_actions(
        self,
        observations: Mapping[Any, Any],
        state: Mapping[Any, Sequence[Any]] | None = None,
        prev_action: Mapping[Any, Any] | None = None,
        prev_reward: Mapping[Any, float] | None = None,
        info: Mapping[Any, Any] | None = None,
        policy_id: str = ONLY_POLICY,
        full_fetch: bool = False,
        explore: bool | None = None,
        *,
        timestep: int | None = None,
        episodes: Iterable[object] | None = None,  # noqa: ARG002  # only custom policies read it
        unsquash_actions: bool | None = None,
        clip_actions: bool | None = None,
        normalize_actions: bool | None = None,
    ) -> Any:
        """Computes actions for observations by any key, of one policy.

        Args:
            observations: Observations by key.
            state: Recurrent states by the same keys.
            prev_action: Actions before by the same keys.
            prev_reward: Rewards before by the same keys.
            info: Infos by the same keys.
            policy_id: The policy.
            full_fetch: Whether to return states and extras as well.
            explore: As in `compute_single_action`, like the rest.
            timestep: As in `compute_single_action`.
            episodes: Ignored.
            unsquash_actions: As in `compute_single_action`.
            clip_actions: As in `compute_single_action`.
            normalize_actions: `unsquash_actions` by its name of Ray 1.6.

        Returns:
            Actions by key; with `state` or `full_fetch`, states and extras by key too.
        """
        requests = [
            Request(
                observation,
                (state or {}).get(key),
                (prev_action or {}).get(key),
                (prev_reward or {}).get(key),
                (info or {}).get(key),
            )
            for key, observation in observations.items()
        ]
        results = self.compute(
            requests,
            policy_id,
            explore=explore,
            timestep=timestep,
            unsquash=unsquash_actions if normalize_actions is None else normalize_actions,
            clip=clip_actions,
        )
        computed = dict(zip(observations, results, strict=True))
        actions = {key: one.action for key, one in computed.items()}
        if not (state or full_fetch):
            return actions
        states = {key: one.state for key, one in computed.items()}
        return actions, states, {key: one.extras for key, one in computed.items()}

    def compute(
        self,
        requests: Sequence[Request],
        policy_id: str,
        *,
        explore: bool | None = None,
        timestep: int | None = None,
        unsquash: bool | None = None,
        clip: bool | None = None,
    ) -> list[ComputedAction]:
        """Computes one action a request; None is the config's value.

        Raises:
            ObservationError: An observation has another shape or structure, or no numbers.
        """
        policy_id = resolve_policy_id(policy_id, self._running.algorithm.config.policies)
        try:
            return self._compute_unchecked(requests, policy_id, explore, timestep, unsquash, clip)
        except CompatError:
            raise
        except Exception as error:
            space = self._observed_by(policy_id)
            # Preprocessors of the old API stack hold some observations against the bounds, too.
            is_outside = "outside given space" in str(error)
            for request in requests:
                given = request.observation
                if space is not None and (is_outside or not _fits(given, space)):
                    shape = f" of the shape {given.shape}" if isinstance(given, np.ndarray) else ""
                    raise ObservationError(
                        f"The observation{shape} {repr(given)[:100]} is not of the space {space}.",
                        where=f"compute_action(policy_id={policy_id!r})",
                        fix="give one as `reset()` and `step()` of the environment do",
                    ) from error
            if not self._running.algorithm.config.enable_env_runner_and_connector_v2:
                initial = self._running.algorithm.get_policy(policy_id).get_initial_state()
                shapes = [tuple(np.shape(part)) for part in initial]
                for request in requests:
                    if is_given(request.state):
                        checked_state(request.state, shapes, where="state")
            raise

    def _compute_unchecked(
        self,
        requests: Sequence[Request],
        policy_id: str,
        explore: bool | None,
        timestep: int | None,
        unsquash: bool | None,
        clip: bool | None,
    ) -> list[ComputedAction]:
        algorithm = self._running.algorithm
        config = algorithm.config
        if not config.enable_env_runner_and_connector_v2:
            space = self._observed_by(policy_id)
            if space is not None:
                requests = [
                    replace(request, observation=_as_observed(request.observation, space))
                    if request.views is None
                    else request
                    for request in requests
                ]
            return [
                ComputedAction(
                    *algorithm.compute_single_action(
                        **request.arguments(),
                        policy_id=policy_id,
                        full_fetch=True,
                        explore=explore,
                        timestep=timestep,
                        unsquash_action=unsquash,
                        clip_action=clip,
                    )
                )
                for request in requests
            ]
        runner = self._running.local_runner()
        if timestep is None:
            steps = ("env_runners", "num_env_steps_sampled_lifetime")
            timestep = int(algorithm.metrics.peek(steps, default=0))
        with modules.following(_module(runner, policy_id), explore):
            explore = config.explore if explore is None else explore
            computed = _compute(runner, requests, policy_id, explore=explore, timestep=timestep)
        unsquash = bool(config.normalize_actions if unsquash is None else unsquash)
        clip = bool(config.clip_actions if clip is None else clip)
        if (unsquash, clip) == (bool(config.normalize_actions), bool(config.clip_actions)):
            return computed  # connectors have done it
        space = _module(runner, policy_id).action_space
        return [replace(one, action=fit_action(one.raw, space, unsquash, clip)) for one in computed]

    def _observed_by(self, policy_id: str) -> Any:
        """The space of what a policy observes in its environment; None: it is not known."""
        algorithm = self._running.algorithm
        if not algorithm.config.enable_env_runner_and_connector_v2:
            space = getattr(algorithm.get_policy(policy_id), "observation_space", None)
            return getattr(space, "original_space", space)
        runner = self._running.local_runner()
        found = connectors.env_to_module(runner).input_observation_space
        several = configs.is_multi_agent(runner.config)
        return found[agent_of(runner, policy_id)] if several else found


def _fits(observation: Any, space: gymnasium.Space[Any]) -> bool:
    """Whether a network can take an observation, which may be beyond the bounds of a Box."""
    import gymnasium as gym

    try:
        match space:
            case gym.spaces.Dict():
                same = set(observation) == set(space.spaces)
                return same and all(_fits(observation[key], part) for key, part in space.items())
            case gym.spaces.Tuple():
                return len(observation) == len(space) and all(map(_fits, observation, space))
            case gym.spaces.Box():
                array = np.asarray(observation)
                return array.shape == space.shape and bool(np.isfinite(array).all())
        return bool(space.contains(observation))
    except (LookupError, TypeError, ValueError):
        return False


def _request_of(input_dict: Mapping[str, Any]) -> Request:
    states = sorted(name for name in input_dict if name.startswith("state_in_"))
    usual = {"obs", "prev_actions", "prev_rewards", "infos", *states}
    return Request(
        input_dict["obs"],
        [input_dict[name] for name in states] or None,
        input_dict.get("prev_actions"),
        input_dict.get("prev_rewards"),
        input_dict.get("infos"),
        None if input_dict.keys() <= usual else input_dict,
    )


def _compute(
    env_runner: EnvRunner,
    requests: Sequence[Request],
    policy_id: str,
    *,
    explore: bool,
    timestep: int,
) -> list[ComputedAction]:
    """Computes one action a request with the connectors of an env runner of the new API stack."""
    multi_agent = configs.is_multi_agent(env_runner.config)
    module = _module(env_runner, policy_id)
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
    return [
        _computed_action({name: column[i] for name, column in out.items()}, agent)
        for i in range(len(requests))
    ]


def _module(env_runner: EnvRunner, policy_id: str) -> RLModule:
    module = env_runner.module
    known = module if configs.is_multi_agent(env_runner.config) else {ONLY_POLICY: module}
    if policy_id not in known:
        raise UnknownPolicyError(
            f"There is no policy {policy_id!r}.",
            where=f"compute_action(policy_id={policy_id!r})",
            fix=f"the policies are {', '.join(map(repr, known.keys()))}",
        )
    return known[policy_id]


def _episode(
    env_runner: EnvRunner, module: RLModule, agent: object, policy_id: str, request: Request
) -> SingleAgentEpisode | MultiAgentEpisode:
    """An episode that ends with the observation, after the steps of a state and actions before."""
    from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    actions: list[Any] = []
    rewards: list[float] = []
    outputs: dict[str, list[Any]] = {}
    if is_given(request.state) or request.prev_action is not None:
        given = 0.0 if request.prev_reward is None else request.prev_reward
        action, space = request.prev_action, module.action_space
        if action is None:
            action = space.sample()
        # Attention nets may use several steps before, but not of actions with several parts.
        several = space.shape is not None and np.ndim(action) > len(space.shape)
        actions = list(action) if several else [action]
        rewards = np.atleast_1d(given).tolist()
        # Nets that use more of one than of the other ignore what is added.
        lacking = len(actions) - len(rewards)
        rewards, actions = [0.0] * lacking + rewards, actions[:1] * -lacking + actions
        if is_given(request.state):
            state = nest_state(module, check_state(module, request.state), batched=False)
            outputs = {"state_out": [state] * len(rewards)}
    pipeline = connectors.env_to_module(env_runner)
    seen = pipeline.input_observation_space
    observation = _as_observed(request.observation, seen if agent is None else seen[agent])
    columns = {
        "observations": [observation] * (len(rewards) + 1),
        "infos": [dict(request.info or {})] * (len(rewards) + 1),
        "actions": actions,
        "rewards": rewards,
    }
    more = {
        "observation_space": pipeline.input_observation_space,
        "action_space": pipeline.input_action_space,
        "len_lookback_buffer": 0,
    }
    if agent is None:
        return SingleAgentEpisode(**columns, extra_model_outputs=outputs, **more)
    return MultiAgentEpisode(
        **{name: [{agent: value} for value in column] for name, column in columns.items()},
        extra_model_outputs=[
            {agent: {name: values[i] for name, values in outputs.items()}}
            for i in range(len(actions))
        ],
        agent_to_module_mapping_fn=lambda *_, **__: policy_id,
        **more,
    )


def _as_observed(observation: Any, space: gymnasium.Space[Any]) -> Any:
    """An observation with the structure and the types of its space: lists as arrays.

    Raises:
        LookupError: It lacks a key of the space, or has one more.
        TypeError: It has another structure.
        ValueError: It has another shape or length, or a part that is text or no number.
    """
    import gymnasium as gym

    match space:
        case gym.spaces.Dict():
            if set(observation) != set(space.spaces):
                raise LookupError(f"the keys are {list(space.spaces)}")
            return {key: _as_observed(observation[key], part) for key, part in space.items()}
        case gym.spaces.Tuple():
            return tuple(_as_observed(*pair) for pair in zip(observation, space, strict=True))
        case gym.spaces.Box() | gym.spaces.MultiBinary() | gym.spaces.MultiDiscrete():
            array = np.asarray(observation)
            if array.shape == (1, *space.shape):  # a batch of one, which old networks took
                array = array[0]
            if array.shape != space.shape or array.dtype.kind in "US":
                raise ValueError(f"the shape is {space.shape}")
            if np.issubdtype(space.dtype, np.floating) and array.dtype.kind != "f":
                array = array.astype(space.dtype)
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                is_bounded = not isinstance(space, gym.spaces.Box) or space.is_bounded()
                if is_bounded or np.isnan(array).any():  # without bounds, infinity masks choices
                    raise ValueError("it has a part that is no number")
            return array
        case gym.spaces.Discrete() if np.shape(observation) == (1,):
            return np.reshape(observation, ())[()]
    return observation


def agent_of(
    env_runner: EnvRunner, policy_id: str, mapping: Callable[..., str] | None = None
) -> Any:
    """An agent of the policy: Ray's filters are kept by agent, not by policy.

    Mappings may depend on the episode, and have no agent for some policy at the moment (an opponent
    that waits in a league). Then it is an agent with the policy's action space.
    """
    pipeline = connectors.env_to_module(env_runner)
    agents = list(pipeline.input_observation_space.spaces)
    mapping = mapping or env_runner.config.policy_mapping_fn
    for agent in agents:
        with suppress(AttributeError, TypeError):  # there is no episode
            if mapping(agent, None) == policy_id:
                return agent
    module = env_runner.module.get(policy_id)
    actions = pipeline.input_action_space.spaces
    return next((a for a in agents if module and actions[a] == module.action_space), agents[0])


def _computed_action(outputs: dict[str, Any], agent: object) -> ComputedAction:
    if agent is not None:
        outputs = {name: by_agent[agent] for name, by_agent in outputs.items() if agent in by_agent}
    raw = outputs.pop("actions")
    action = outputs.pop("actions_for_env", raw)
    state = [np.asarray(s) for s in state_after_step(outputs.pop("state_out", []), batched=False)]
    if "action_logp" in outputs:
        outputs["action_prob"] = np.exp(outputs["action_logp"])
    return ComputedAction(action, state, outputs, raw)


def fit_action(action: Struct, space: gymnasium.Space[Any], unsquash: bool, clip: bool) -> Any:
    """The module's action for the environment; unsquashed ones need no clipping."""
    from ray.rllib.utils.spaces import space_utils

    struct = space_utils.get_base_struct_from_space(space)
    if unsquash:
        return space_utils.unsquash_action(action, struct)
    return space_utils.clip_action(action, struct) if clip else action
