"""Recordings of steps: the JSON files of RLlib's `output` and `input`."""
