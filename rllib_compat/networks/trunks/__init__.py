"""Base models: what turns an observation into features, the same under each head."""
