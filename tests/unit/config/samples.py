"""The real configs in tests/legacy_configs, and small helpers around translations."""

import json
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "legacy_configs"
FILES = sorted(FOLDER.glob("*.json"))


def read(path):
    return json.loads(path.read_text("utf-8"))


def first_of_grids(value):
    """A config as one trial of Tune gets it."""
    if isinstance(value, dict):
        if set(value) == {"grid_search"}:
            return first_of_grids(value["grid_search"][0])
        return {key: first_of_grids(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [first_of_grids(inner) for inner in value]
    return value


def verdicts(translation):
    return {f.path: f.verdict.value for f in translation.report}


def setting(translation, path, default=None):
    place = translation.calls
    for key in path.split("."):
        if not isinstance(place, dict) or key not in place:
            return default
        place = place[key]
    return place
