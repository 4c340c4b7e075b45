"""Bytes on disk to the neutral state, and back."""
