"""One module a layout: how a format lies on disk, and how it is read."""
