"""Recorded transitions, as learners take them."""

from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat import ray_versions


def episodes_of(batch, outputs=lambda i: {}):
    """An episode a transition.

    Args:
        batch: Columns by the old Ray's names.
        outputs: The extra model outputs of the transition of a number.
    """
    made = [
        SingleAgentEpisode(
            observations=[batch["obs"][i], batch["new_obs"][i]],
            actions=[batch["actions"][i]],
            rewards=[float(batch["rewards"][i])],
            terminated=bool(batch["dones"][i]),
            len_lookback_buffer=0,
            extra_model_outputs=outputs(i),
        )
        for i in range(len(batch["obs"]))
    ]
    return [ray_versions.to_numpy(episode) for episode in made]
