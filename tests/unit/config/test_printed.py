"""Printed code builds the same config as the translation, in a namespace of its own."""

import pytest

from rllib_compat.config import translate
from tests.properties.test_code import same
from tests.unit.config.samples import FILES, first_of_grids, read

#: Some of the configs are for environments that gymnasium calls old.
pytestmark = pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_printed_code_needs_nothing_but_itself(path):
    told = first_of_grids(read(path))
    found = translate(
        told["config"],
        algorithm=told["run"],
        env=told.get("env"),
        legacy_ray=told["ray_version"],
        on_unknown="warn",
    )
    if found.refused:
        assert any(row.hint for row in found.report if row.verdict.value == "refused")
        return
    namespace = {}
    exec(compile(found.to_python(), path.stem, "exec"), namespace)
    printed, built = vars(namespace["config"]), vars(found.algorithm_config)
    assert {
        name for name in {*printed, *built} if not same(printed.get(name), built.get(name))
    } == set()
