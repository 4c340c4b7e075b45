"""Translation of legacy configs: rules as data, and the engine that applies them."""
