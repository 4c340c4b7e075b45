"""The comparison with other software finds what is alike, and leaves facts alone."""

import zipfile

import pytest

from tests import originality

THEIRS = '''
"""A module whose first sentence tells how many apples there are in a basket."""
import os
from collections import OrderedDict, defaultdict

SETTINGS = {"lr": 0.001, "gamma": 0.99, "hiddens": [256, 256], "dueling": True, "n_step": 3}


def spread(basket, apples=3, pears=4, plums=5, *, cherries=6, quinces=7, medlars=8):
    for place, fruit in enumerate(basket):
        if fruit.weight > apples and place % pears == 0:
            basket[place] = fruit.cut(plums) + basket[place - 1]
    raise ValueError(f"No basket of {apples} apples can be spread on a table like this.")
'''
COPIED_CODE = '''
def other(basket, apples, pears, plums):
    """Our own words."""
    for place, fruit in enumerate(basket):
        if fruit.weight > apples and place % pears == 0:  # with a remark
            basket[place] = fruit.cut(plums) + basket[place - 1]
'''
COPIED_MESSAGE = """
raise KeyError("Here no basket of " "apples can be spread on a table like that")
"""
COPIED_DOCSTRING = '''
def own():
    """It tells how many apples there
    are in a basket."""
'''
FACTS = """
from collections import OrderedDict, defaultdict

SETTINGS = {"lr": 0.001, "gamma": 0.99, "hiddens": [256, 256], "dueling": True, "n_step": 3}


def spread(basket, apples=3, pears=4, plums=5, *, cherries=6, quinces=7, medlars=8):
    return basket
"""
DOCUMENT = """
# Fruit

It says how many apples there are in a
basket of ours.

```python
if fruit.weight > apples and place % pears == 0: basket[place] = fruit.cut(plums)
```
"""


@pytest.fixture
def compared(tmp_path, monkeypatch, capsys):
    """Compares one file of ours with a wheel; what is printed, and the exit status."""
    wheel = tmp_path / "fruit-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("fruit/spread.py", THEIRS)

    def compare(name, source):
        monkeypatch.setattr(originality, "ours", lambda: [(name, source)])
        monkeypatch.setattr("sys.argv", ["originality", str(wheel)])
        status = originality.main()
        return capsys.readouterr().out, status

    return compare


def test_code_is_found_whatever_is_said_beside_it(compared):
    told, status = compared("ours.py", COPIED_CODE)
    assert status == 1
    assert "ours.py:4-6: " in told
    assert "fruit/spread.py" in told


@pytest.mark.parametrize("source", [COPIED_MESSAGE, COPIED_DOCSTRING], ids=["message", "docstring"])
def test_sentences_are_found_across_lines_and_strings(compared, source):
    told, status = compared("ours.py", source)
    assert status == 1
    assert " words as in " in told


def test_documents_are_compared_with_their_blocks_of_python(compared):
    told, status = compared("ours.md", DOCUMENT)
    assert status == 1
    assert "ours.md:4-5: 8 words" in told
    assert "ours.md:8-8: " in told


def test_facts_may_be_alike(compared):
    assert compared("ours.py", FACTS) == ("0 alike, in 1 files of other software\n", 0)
