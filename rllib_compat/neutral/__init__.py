"""What everything else speaks of: errors, reports, spaces, records and the neutral checkpoint.

A leaf of the house: nothing here imports anything of this package but its own neighbours.
"""
