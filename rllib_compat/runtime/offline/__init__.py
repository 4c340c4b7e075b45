"""Recordings of steps: the JSON files that RLlib's `output` wrote and its `input` read."""
