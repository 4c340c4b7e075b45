"""One module a format that can be written."""
