"""The bounded pickle machine: reads any pickle, runs none."""
