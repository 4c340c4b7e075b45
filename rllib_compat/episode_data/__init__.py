"""What environments say of their own: collected on env runners, written to files of the trial.

`recorder.py` is the callbacks class, with what it keeps of an episode; `files.py` writes and reads
the files, and needs no Ray.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {"files": ("read_episodes",), "recorder": ("EpisodeRecorder",)}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
