"""Configs of the training matrix are translated, or refused by name, before anything is built."""

import pytest

from rllib_compat import translate
from rllib_compat.errors import CompatError
from tests import training_matrix
from tests.marks import examples

CASES = training_matrix.drawn("translated")


def refusal(case):
    """Why a config is refused, or None: then Ray finds nothing wrong with it."""
    told = case.ray if case.tells else None
    try:
        made = translate(case.config, algorithm=case.algorithm, legacy_ray=told).algorithm_config
        made.copy(copy_frozen=False).validate()
    except CompatError as refused:
        return refused
    return None


@pytest.mark.parametrize("algorithm", training_matrix.SMALL)
def test_a_config_is_translated_or_its_refusal_says_what_to_do(algorithm):
    cases = [case for case in CASES if case.algorithm == algorithm]
    for case in cases[: examples(6)]:
        refused = refusal(case)
        assert refused is None or training_matrix.says_what_to_do(refused), case


def test_the_matrix_says_what_the_ray_knew():
    for case in CASES:
        had = training_matrix.defaults(case.algorithm, case.ray)
        assert training_matrix.SAYS[case.says].keys() <= had.keys(), case
    assert {case.algorithm for case in CASES} == training_matrix.SMALL.keys()
    assert {case.ray for case in CASES} == set(training_matrix.RAYS)


def test_a_slice_is_the_same_for_the_same_text_and_another_one_for_another():
    one, again, other = (training_matrix.drawn(text, count=20) for text in ("a", "a", "b"))
    assert one == again != other
    assert not {"num_workers", "num_rollout_workers", "evaluation_num_workers"} & {
        key
        for case in training_matrix.drawn("a", count=200, quick=True)
        for key, value in case.config.items()
        if value
    }


@pytest.mark.parametrize("algorithm", training_matrix.SMALL)
def test_cases_that_say_several_things_say_everything_once(algorithm):
    cases = list(training_matrix.together(algorithm))
    told = [says for case in cases for says in case.says.split(training_matrix.AND)]
    alone = {case.says for case in CASES if case.algorithm == algorithm}
    assert sorted(told) == sorted(set(told))
    assert set(told) >= alone
    for case in cases:
        had = training_matrix.defaults(algorithm, case.ray)
        assert training_matrix.said_at_once(case.says).keys() <= had.keys()
        if parts := training_matrix.halves(case):
            assert training_matrix.AND.join(part.says for part in parts) == case.says
