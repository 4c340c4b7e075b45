"""Legacy RLlib code, configs and checkpoints on today's Ray."""
