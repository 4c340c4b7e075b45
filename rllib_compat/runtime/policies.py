"""The policy object of Ray 0.5 – 2.x around today's `RLModule`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.registry.legacy_api import missing

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig, RLModule


class LegacyPolicy:
    """A policy as legacy code uses it: observations are preprocessed and filtered already.

    Args:
        policy_id: Its id; the module has the same one.
        module: The `RLModule` that computes.
        config: The algorithm's config.
        store: What takes new weights, where the module is only a copy of the learners'.
        load: What has the weights, where the module has only those that acting needs.

    Attributes:
        policy_id: Its id.
        model: The module.
        observation_space: What the module takes.
        action_space: What it gives.
    """

    def __init__(
        self,
        policy_id: str,
        module: RLModule,
        config: AlgorithmConfig,
        store: Callable[[Mapping[str, Any]], None] | None = None,
        load: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self.policy_id = policy_id
        self.model = module
        self.observation_space = module.observation_space
        self.action_space = module.action_space
        self._config = config
        self._store = store or self._set_state
        self._load = load or module.get_state

    @property
    def config(self) -> dict[str, Any]:
        """The algorithm's config as a dict."""
        return dict(self._config.to_dict())

    def compute_actions(
        self,
        obs_batch: Any,
        state_batches: Any = None,
        prev_action_batch: Any = None,  # noqa: ARG002
        prev_reward_batch: Any = None,  # noqa: ARG002
        info_batch: Any = None,  # noqa: ARG002
        episodes: Any = None,  # noqa: ARG002
        explore: bool | None = None,
        timestep: int | None = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> tuple[Any, list[Any], dict[str, Any]]:
        """Computes actions for a batch.

        Returns:
            The actions, the state batches, and what else was computed (`action_logp`, `vf_preds`,
            `action_dist_inputs`).
        """
        import torch
        import tree

        explore = self._config.explore if explore is None else explore
        batch: dict[str, Any] = {"obs": tree.map_structure(torch.as_tensor, obs_batch)}
        if self.is_recurrent():
            states = state_batches or [
                np.repeat(s[None], len(obs_batch), 0) for s in self.get_initial_state()
            ]
            template = self.model.get_initial_state()
            batch["state_in"] = tree.unflatten_as(template, [torch.as_tensor(s) for s in states])
            batch["obs"] = tree.map_structure(lambda o: o[:, None], batch["obs"])
        with torch.no_grad():
            if explore:
                out = dict(self.model.forward_exploration(batch, t=timestep or 0))
            else:
                out = dict(self.model.forward_inference(batch))
            if self.is_recurrent():
                recurrent = out.pop("state_out")
                out = tree.map_structure(lambda o: o[:, 0], out)
                out["state_out"] = recurrent
            if "actions" not in out:
                kind = "exploration" if explore else "inference"
                dist_class = getattr(self.model, f"get_{kind}_action_dist_cls")()
                dist = dist_class.from_logits(out["action_dist_inputs"])
                out["actions"] = (dist if explore else dist.to_deterministic()).sample()
                if explore:
                    out["action_logp"] = dist.logp(out["actions"])
        arrays = tree.map_structure(lambda t: t.cpu().numpy(), out)
        return arrays.pop("actions"), tree.flatten(arrays.pop("state_out", [])), arrays

    def compute_single_action(
        self,
        obs: object,
        state: Iterable[Any] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Any, list[Any], dict[str, Any]]:
        """Computes the action for one observation; see `compute_actions`."""
        import tree

        batched = tree.map_structure(lambda o: np.asarray(o)[None], obs)
        states = [np.asarray(s)[None] for s in state] if state else None
        result = self.compute_actions(batched, states, *args, **kwargs)
        actions, states_out, info = tree.map_structure(lambda value: value[0], result)
        return actions, states_out, info

    def get_weights(self) -> dict[str, Any]:
        """The weights by name, as arrays."""
        return dict(self._load())

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Sets the weights by name."""
        self._store(weights)

    def get_state(self) -> dict[str, Any]:
        """The weights, where a policy's state had them."""
        return {"weights": self.get_weights()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Sets what `get_state` returned."""
        self.set_weights(state["weights"])

    def get_initial_state(self) -> list[Any]:
        """The recurrent state to begin with, as a flat list of arrays."""
        import tree

        state = self.model.get_initial_state() if self.is_recurrent() else []
        return [np.asarray(s) for s in tree.flatten(state or [])]

    def is_recurrent(self) -> bool:
        """Whether the module has a state."""
        return bool(self.model.is_stateful())

    def num_state_tensors(self) -> int:
        """How many arrays its state has."""
        return len(self.get_initial_state())

    def __getattr__(self, name: str) -> Any:
        raise missing(self, "policy", name)

    def _set_state(self, weights: Mapping[str, Any]) -> None:
        self.model.set_state(dict(weights))
