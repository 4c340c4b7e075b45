"""What each old network computes, in numpy alone, against what it computed when it was alive."""

import numpy as np
import pytest

from rllib_compat.conversion import compare_outputs, float32_errors
from rllib_compat.errors import MissingInformationError, NotConvertibleError
from tests.legacy.cases import all_cases
from tests.legacy.networks import greedy, read, recorded
from tests.support import REFUSED


@pytest.mark.parametrize("case", [c for c in all_cases() if str(c) not in REFUSED], ids=str)
def test_the_old_network_computes_what_it_computed_when_it_was_alive(case):
    _, networks = read(case)
    compared = 0
    for policy_id, network in networks.items():
        known = recorded(case, policy_id, network)
        if known is None and (chosen := greedy(case, policy_id, network)):
            inputs, actions = chosen
            values = network.forward(inputs)["q_values"]
            np.testing.assert_array_equal(values.argmax(-1), actions)
            compared += 1
        if known is None:
            continue
        inputs, expected = known
        outputs = network.forward(inputs)
        errors = float32_errors(network, inputs, outputs)
        for row in compare_outputs(policy_id, expected, outputs, errors):
            assert row.ok, row
        compared += 1
    assert compared


@pytest.mark.parametrize("case", [c for c in all_cases() if str(c) in REFUSED], ids=str)
def test_a_network_that_is_not_converted_is_refused_with_its_reason(case):
    with pytest.raises((NotConvertibleError, MissingInformationError), match=REFUSED[str(case)]):
        read(case)
