"""Writes what a plan says into an empty folder: a file for each kind of target."""
