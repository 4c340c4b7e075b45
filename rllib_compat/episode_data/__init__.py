"""Records data of environments: collected on env runners, written to files of the trial.

`recorder.py` has the callbacks class; `files.py` writes and reads the files, and needs no Ray.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {"files": ("read_episodes",), "recorder": ("EpisodeRecorder",)}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
