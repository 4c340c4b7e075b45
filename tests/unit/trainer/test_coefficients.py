"""What learners keep in no state is read from a trainer's checkpoint, and only what it can be."""

import json
import shutil

import pytest

from rllib_compat.errors import CompatError
from rllib_compat.formats import read_checkpoint
from rllib_compat.trainer.coefficients import FILE, load
from tests.legacy.cases import find

(CASE, *_) = find(ray="2.40.0", algorithm="SAC")


@pytest.fixture
def tree(tmp_path):
    """A checkpoint of today's kind, in which a file can be put."""
    return shutil.copytree(CASE.checkpoint, tmp_path / "tree")


def test_a_checkpoint_without_the_file_is_what_it_was(tree):
    assert load(tree) == {}
    (policy,) = read_checkpoint(tree).policies.values()
    assert policy.log_alpha is None


def test_a_conversion_goes_on_with_the_temperature_that_a_trainer_had(tree):
    held = {"curr_log_alpha": {"default_policy": -1.5, "other": 2.0}}
    (tree / FILE).write_text(json.dumps(held))
    assert load(tree)["curr_log_alpha"] == held["curr_log_alpha"]
    (policy,) = read_checkpoint(tree).policies.values()
    assert (policy.log_alpha, policy.kl_coeff) == (-1.5, None)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"curr_log_alpha": 3}',
        '{"curr_log_alpha": {"default_policy": "import os"}}',
        '{"curr_log_alpha": {"default_policy": NaN}}',
        '{"curr_log_alpha": {"default_policy": true}}',
        '{"curr_log_alpha": {"default_policy": {"a": []}}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_an_error_of_restore_and_no_temperature_of_a_conversion(tree, text):
    (tree / FILE).write_text(text)
    with pytest.raises(CompatError, match=r"coefficients\.json"):
        load(tree)
    (policy,) = read_checkpoint(tree).policies.values()
    assert policy.log_alpha is None
