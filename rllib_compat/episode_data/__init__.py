"""An environment's own data in files of the trial: the recorder, and what reads its files."""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "files": ("read_episodes",),
    "recorder": ("EpisodeRecorder",),
}

__getattr__, __all__ = lazy_exports(__name__, "rllib_compat.runtime.episode_data", _FILES)


def __dir__() -> list[str]:
    return __all__
