"""The state of optimizers, from every form in which an RLlib kept it."""
