"""Converts checkpoints: complete, identify, plan, write, prove.

`rllib_compat.convert`, `inspect` and `verify` are the public functions. `prepare` does the steps up
to the plan: it adds missing facts and identifies the networks, without writing. `compare_outputs`
compares outputs, within the old network's own `float32_errors`.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "": ("recordings",),
    "compare": ("OutputDifference", "compare as compare_outputs", "float32_errors"),
    "complete": ("complete as complete_checkpoint",),
    "convert": ("describe_next_step", "prepare"),
    "convert_many": ("convert_many as convert_folder", "find_jobs"),
    "identify": ("identify_networks",),
    "module_source": ("make_module_source",),
    "plan": ("Form", "Plan"),
    "workers": ("run_in_processes", "run_on_ray"),
}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
