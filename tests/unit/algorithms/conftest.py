"""Tells test reports how far this package was from what an old Ray had computed."""

import pytest

from tests.unit.algorithms import recordings


@pytest.fixture(autouse=True)
def differences(record_property):
    recordings.DIFFERENCES.clear()
    yield
    for kind, difference in recordings.DIFFERENCES.items():
        record_property(kind, difference)
