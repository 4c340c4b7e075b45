"""Names for arrays: the tables of every scheme, and the orders of what was stored without names."""
