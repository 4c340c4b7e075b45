"""Heads: what each kind of algorithm computes from features."""
