"""What the environment computes with."""


def height(hour):
    return float(hour % 4)
