"""Objects of the old world (environments, callbacks, filters) that run inside the new one."""
