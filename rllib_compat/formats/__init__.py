"""Bytes on disk to the neutral state, and back.

`read_checkpoint` reads a checkpoint of any layout and `write_msgpack` writes one that needs no Ray.
Below that, `load_pickle` and `load_torch` read one file, `unpack` and `pack` Ray's form of msgpack,
and `list_globals` says what all files of a folder name. What is written appears whole or not at
all: `atomic_directory`, `atomic_file`.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "": ("files", "layouts"),
    "atomic": ("atomic_directory", "atomic_file"),
    "globals": ("Handling", "list_globals"),
    "layouts": ("read as read_checkpoint",),
    "layouts.folder": ("Folder",),
    "layouts.tree": ("read_states",),
    "msgpack.codec": ("pack", "unpack"),
    "msgpack.write": ("write as write_msgpack",),
    "paths": ("local_path", "storage_path"),
    "stores": ("MARK", "Store", "remove_copy", "source_path"),
    "pickles": ("load as load_pickle", "load_torch", "looks_like_pickle"),
}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
