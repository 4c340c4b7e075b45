"""Reading, converting and checking legacy checkpoints."""
