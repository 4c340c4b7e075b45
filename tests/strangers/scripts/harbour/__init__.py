"""A project's own package, beside its scripts."""
