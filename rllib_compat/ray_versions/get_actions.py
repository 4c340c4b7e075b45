"""The connector that chooses actions: one that is not explored has one log-probability a step."""

from __future__ import annotations

from typing import Any

from ray.rllib.connectors import module_to_env as of_ray
from ray.rllib.core.columns import Columns

from rllib_compat.ray_versions import sampling
from rllib_compat.ray_versions.env_runners import foreach_env_runner
from rllib_compat.ray_versions.modules import explores
from rllib_compat.ray_versions.types import Algorithm, EnvRunner, RLModule


class GetActions(of_ray.GetActions):  # type: ignore[misc]  # Ray has no types
    """Ray's own connector, by its name, which takes the likeliest actions as `sampling.act` does.

    Ray gives a zero for each number of an action there, and fails where parts have not as many.
    """

    def _get_actions(self, batch: dict[str, Any], module: RLModule, explore: bool) -> None:
        inputs = batch.get(Columns.ACTION_DIST_INPUTS)
        explore = explore and explores(module)
        if explore or inputs is None or Columns.ACTIONS in batch:
            super()._get_actions(batch, module, explore)
            return
        batch[Columns.ACTIONS], logp = sampling.act(
            module, inputs, lambda tensors: tensors, explore=False, in_numpy=False
        )
        batch.setdefault(Columns.ACTION_LOGP, logp)


def replace_in_workers(algorithm: Algorithm) -> None:
    """Puts the connector into env runners of classes that are not ours, which stay otherwise.

    Those that replace failed ones later have Ray's again.
    """
    if not algorithm.config.enable_env_runner_and_connector_v2:
        return
    for group in (algorithm.env_runner_group, algorithm.eval_env_runner_group):
        if group is not None:
            foreach_env_runner(group, replace_get_actions)


def replace_get_actions(runner: EnvRunner) -> None:
    """Puts the connector in the place of Ray's in a runner's pipeline; a user's own stays."""
    pipeline = getattr(runner, "_module_to_env", None)
    if pipeline is None:  # a class of the user's that has none
        return
    pipeline.connectors = [
        GetActions(c.input_observation_space, c.input_action_space)
        if type(c) is of_ray.GetActions
        else c
        for c in pipeline.connectors
    ]


def rays_to_env(*, multi_agent: bool = False) -> tuple[type, ...]:
    """The classes of Ray's own connectors to the environment, and of ours that takes a place."""
    return (
        GetActions,
        of_ray.TensorToNumpy,
        of_ray.UnBatchToIndividualItems,
        *((of_ray.ModuleToAgentUnmapping,) if multi_agent else ()),
        of_ray.RemoveSingleTsTimeRankFromBatch,
        of_ray.NormalizeAndClipActions,
        of_ray.ListifyDataForVectorEnv,
    )
