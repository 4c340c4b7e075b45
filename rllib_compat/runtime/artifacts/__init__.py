"""Folders that simulators write, in the checkpoints that they belong to.

`reading.py` runs on env runners; `collecting.py` is the callbacks class, which asks them at each
checkpoint; `stored.py` reads, checks and unpacks what is in a checkpoint, without Ray.
"""
