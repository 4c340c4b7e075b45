"""The events of callbacks dicts."""

DICT_EVENTS = (
    "on_episode_start",
    "on_episode_step",
    "on_episode_end",
    "on_sample_end",
    "on_train_result",
    "on_postprocess_traj",
)
