"""Reads the keys that a Ray release knew out of its wheel, and writes the table of legacy keys."""
