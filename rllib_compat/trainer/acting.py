"""`compute_action` and its family, for observations as the environment gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rllib_compat.runtime.policy_mapping import ONLY_POLICY, known_as
from rllib_compat.trainer import inference


class Acting:
    """The part of a Trainer that acts. See `Trainer` for the attributes."""

    algorithm: Any

    def local_runner(self) -> Any:
        """The env runner in this process, with the weights that were trained last."""
        raise NotImplementedError

    def compute_single_action(
        self,
        observation: Any = None,
        state: Sequence[Any] | None = None,
        prev_action: Any = None,
        prev_reward: float | None = None,
        info: Mapping[str, Any] | None = None,
        policy_id: str = ONLY_POLICY,
        full_fetch: bool = False,
        explore: bool | None = None,
        *,
        input_dict: Mapping[str, Any] | None = None,
        timestep: int | None = None,
        episode: Any = None,  # noqa: ARG002  # only custom policies looked at it
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
            state: The recurrent state before, as a flat list of arrays.
            prev_action: The action before, for models that look at it; an array of the last ones,
                oldest first, for attention nets that look at several.
            prev_reward: The reward before, likewise.
            info: The environment's info.
            policy_id: The policy to ask.
            full_fetch: Whether to return state and extras as well.
            explore: Whether to sample; None for what the config says.
            input_dict: `obs`, `state_in_0`, `prev_actions`, `prev_rewards` by name, in the place of
                the arguments above.
            timestep: The env steps so far, for schedules of exploration; None for the training's.
            episode: Not looked at.
            unsquash_action: Whether to scale the action from [-1, 1] to its space; None for what
                the config says.
            clip_action: Whether to clip the action to its space; None for what the config says.
            unsquash_actions: The same by its name of Ray 1.6.
            clip_actions: The same by its name of Ray 1.6.

        Returns:
            The action; with `state` or `full_fetch`: (action, state, extras).
        """
        if input_dict is not None:
            request = _request_of(input_dict)
        else:
            request = inference.Request(observation, state, prev_action, prev_reward, info)
        (computed,) = self._compute(
            [request],
            policy_id,
            explore,
            timestep,
            unsquash_action if unsquash_actions is None else unsquash_actions,
            clip_action if clip_actions is None else clip_actions,
        )
        if request.state or full_fetch:
            return computed.action, computed.state, computed.extras
        return computed.action

    compute_action = compute_single_action

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
        episodes: Iterable[Any] | None = None,  # noqa: ARG002  # only custom policies looked at it
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
            policy_id: The policy to ask.
            full_fetch: Whether to return states and extras as well.
            explore: As in `compute_single_action`, like the rest.
            timestep: As in `compute_single_action`.
            episodes: Not looked at.
            unsquash_actions: As in `compute_single_action`.
            clip_actions: As in `compute_single_action`.
            normalize_actions: `unsquash_actions` by its name of Ray 1.6.

        Returns:
            Actions by key; with `state` or `full_fetch`, states and extras by key too.
        """
        requests = [
            inference.Request(
                observation,
                (state or {}).get(key),
                (prev_action or {}).get(key),
                (prev_reward or {}).get(key),
                (info or {}).get(key),
            )
            for key, observation in observations.items()
        ]
        unsquash = unsquash_actions if normalize_actions is None else normalize_actions
        results = self._compute(requests, policy_id, explore, timestep, unsquash, clip_actions)
        computed = dict(zip(observations, results, strict=True))
        actions = {key: one.action for key, one in computed.items()}
        if not (state or full_fetch):
            return actions
        states = {key: one.state for key, one in computed.items()}
        return actions, states, {key: one.extras for key, one in computed.items()}

    def _compute(
        self,
        requests: list[inference.Request],
        policy_id: str,
        explore: bool | None,
        timestep: int | None,
        unsquash: bool | None,
        clip: bool | None,
    ) -> list[inference.Computed]:
        config = self.algorithm.config
        policy_id = known_as(policy_id, config.policies)
        if not config.enable_env_runner_and_connector_v2:
            return inference.compute_on_old_stack(
                self.algorithm,
                requests,
                policy_id,
                explore=explore,
                timestep=timestep,
                unsquash_action=unsquash,
                clip_action=clip,
            )
        runner = self.local_runner()
        steps = ("env_runners", "num_env_steps_sampled_lifetime")
        if timestep is None:
            timestep = int(self.algorithm.metrics.peek(steps, default=0))
        return inference.compute(
            runner,
            requests,
            policy_id,
            explore=config.explore if explore is None else explore,
            timestep=timestep,
            unsquash=config.normalize_actions if unsquash is None else unsquash,
            clip=config.clip_actions if clip is None else clip,
        )


def _request_of(input_dict: Mapping[str, Any]) -> inference.Request:
    states = sorted(name for name in input_dict if name.startswith("state_in_"))
    return inference.Request(
        input_dict["obs"],
        [input_dict[name] for name in states] or None,
        input_dict.get("prev_actions"),
        input_dict.get("prev_rewards"),
        input_dict.get("infos"),
    )
