"""The operations of graphs, in numpy and, in the file beside, in torch."""
