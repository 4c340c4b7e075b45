"""Every pickle of the museum of real checkpoints is read, and its weights are arrays."""

import numpy as np
import pytest

from rllib_compat.formats import load_pickle, load_torch, looks_like_pickle
from rllib_compat.neutral import Budget, is_stand_in
from tests.legacy.cases import MUSEUM

NO_PICKLES = {".json", ".npz", ".csv", ".msgpck", ".py", ".md", ".txt", ".is_checkpoint"}
FILES = [
    path
    for path in sorted(MUSEUM.glob("[0-9]*/**/*"))
    if path.is_file() and path.suffix not in NO_PICKLES and path.stat().st_size
    if path.name not in NO_PICKLES
]


def parts(value):
    """Everything in a value, keys aside, and in the pickles that it holds as bytes."""
    budget, rest, seen = Budget(), [value], {}
    while rest:
        part = rest.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        yield part
        if isinstance(part, dict):
            rest += part.values()
        elif isinstance(part, (list, tuple)):
            rest += part
        elif isinstance(part, (bytes, memoryview)) and looks_like_pickle(part):
            loaded = load_pickle(part, budget=budget)
            assert loaded.size == len(part)
            rest.append(loaded.value)


def test_the_museum_has_pickles_of_every_kind():
    assert len(FILES) > 300
    assert {path.suffix for path in FILES} >= {".pkl", ".pt", "", ".tune_metadata", ".extra_data"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(MUSEUM)))
def test_a_real_file_is_read_to_its_end(path):
    read = load_torch if path.suffix == ".pt" else load_pickle
    loaded = read(path)
    assert loaded.size == path.stat().st_size
    values = list(parts(loaded.value))
    if path.name in ("checkpoint-2", "policy_state.pkl", "module_state.pt"):
        assert any(isinstance(part, np.ndarray) and part.dtype == np.float32 for part in values)
    # Known by name: nothing of numpy, the standard library's containers, or torch's tensors.
    strange = {name.partition(".")[0] for name in loaded.unknown}
    assert not strange & {"numpy", "collections", "datetime", "gym", "gymnasium", "packaging"}
    assert not any(is_stand_in(part) and part.qualified.startswith("numpy._c") for part in values)
