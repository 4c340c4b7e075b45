"""RLModules of one's own, in whatever form a checkpoint has them: they are said to be one's own."""

import json
import shutil

import pytest
from ray import cloudpickle

from rllib_compat import convert, inspect
from rllib_compat.errors import MissingInformationError
from rllib_compat.formats import read_checkpoint
from tests.legacy.cases import find

TREE = find(ray="2.40.0", algorithm="PPO", variant="small-relu")[0]
LEARNER = next(c for c in find(ray="2.10.0") if c.stack == "learner" and c.variant == "vfshare")
MADE = "learner_group/learner/rl_module/default_policy/class_and_ctor_args.pkl"
METADATA = "learner/module_state/default_policy/rl_module_metadata.json"


def by_value(name):
    """A class that pickles have by value, as a program's main module has its own."""
    return type(name, (), {"__module__": "__main__"})


def tree_of(module, catalog):
    def change(folder):
        made = cloudpickle.loads((folder / MADE).read_bytes())
        positional, named = made["ctor_args_and_kwargs"]
        if catalog is not None:
            named["catalog_class"] = catalog
        changed = {"class": module or made["class"], "ctor_args_and_kwargs": (positional, named)}
        (folder / MADE).write_bytes(cloudpickle.dumps(changed))

    return TREE, change


def learner_of(key, name):
    def change(folder):
        told = json.loads((folder / METADATA).read_text())
        spec = told["module_spec_dict"]
        (spec if key == "module_class" else spec["module_config"])[key] = name
        (folder / METADATA).write_text(json.dumps(told))

    return LEARNER, change


@pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")  # names of an older numpy
@pytest.mark.parametrize(
    ("case", "change", "name"),
    [
        (*tree_of(by_value("MyModule"), None), "MyModule"),
        (*tree_of(None, by_value("MyCatalog")), "MyCatalog"),
        (*learner_of("module_class", "my_package.MyModule"), "my_package.MyModule"),
        (*learner_of("catalog_class_path", "my_package.MyCatalog"), "my_package.MyCatalog"),
    ],
    ids=["by value", "catalog", "1.2", "1.2 catalog"],
)
def test_a_module_of_ones_own_is_told_as_one(case, change, name, tmp_path):
    folder = shutil.copytree(case.checkpoint, tmp_path / "own")
    change(folder)
    assert read_checkpoint(folder).policies["default_policy"].policy_class == name
    (row,) = (f for f in inspect(folder).report if f.rule == "unknown")
    assert f"the custom RLModule (or catalog) {name}, which is your own code" in row.message
    with pytest.raises(MissingInformationError, match="your own code") as caught:
        convert(folder, tmp_path / "new", dry_run=True)
    known = name == "my_package.MyModule"
    model = "my_package:MyModule" if known else "my_package.my_module:MyRLModule"
    assert f"--model {model}. " in caught.value.fix
    done = convert(folder, tmp_path / "kept", to="msgpack", inputs=2)
    assert (done.largest_difference or 0) == 0


@pytest.mark.parametrize("case", [TREE, LEARNER], ids=str)
def test_modules_of_ray_are_none_of_ones_own(case):
    assert not [f for f in inspect(case.checkpoint).report if f.rule == "unknown"]
