"""Writes the form of a plan into an empty folder: a module for each form."""
