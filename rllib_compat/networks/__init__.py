"""What each legacy network is, and how it maps to an RLModule."""
