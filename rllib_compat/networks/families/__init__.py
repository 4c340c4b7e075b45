"""A file for each kind of network.

A family has `read(policy, settings)`, which gives a `Reading`. What it raises is the same in all:
`NotYetError` if the network is not one that can be converted; `MissingInformationError` if a size
or a space has to be given; `CheckpointError` if arrays are missing, or the weights contradict the
config or the spaces; `NotConvertibleError` if the Ray never saved some layers. Where new networks
are made, it has `draw(arrays, settings, observations, actions)`, too.
"""
