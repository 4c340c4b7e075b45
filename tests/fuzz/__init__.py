"""Damaged and hostile files for every door of the package, many in one process.

`mutate.py` changes files, `seeds.py` has those that it begins with, `doors.py` what is done with
them, `run.py` counts what came of it. `python -m tests.fuzz` is the command.
"""
