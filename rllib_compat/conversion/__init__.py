"""From a checkpoint to a new one: complete, identify, decide, write, verify."""
