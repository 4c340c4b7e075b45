"""What was recorded of Rays' defaults is a value, or it is not used."""

import json

import pytest

from rllib_compat.registry import keys


@pytest.mark.parametrize("ray", keys.versions())
def test_no_default_has_a_part_that_was_no_literal(ray):
    """Ray 2.60's table of statistics went on as a dict of placeholders, and train() called it."""
    for algorithm in ("PPO", "IMPALA"):
        assert '"$"' not in json.dumps(keys.default_config(algorithm, ray), default=repr)
