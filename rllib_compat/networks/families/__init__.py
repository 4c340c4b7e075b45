"""Readers of networks, a file for each family: from a policy's weights to a `Network`."""
