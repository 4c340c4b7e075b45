"""What an old Ray computed of a loss on a fixed batch; `tests/legacy/losses` has it."""

import numpy as np


class Recording:
    """One case; a file of arrays called `kind.name`."""

    def __init__(self, path):
        with np.load(path) as file:
            self.found = {name: file[name] for name in file}

    def below(self, kind):
        """The arrays of a kind, by their names in it."""
        return {
            name.removeprefix(f"{kind}."): value
            for name, value in self.found.items()
            if name.startswith(f"{kind}.")
        }

    def chunks(self):
        """The arrays of each numbered `chunk`."""
        count = len({name.split(".")[1] for name in self.found if name.startswith("chunk.")})
        return [self.below(f"chunk.{index}") for index in range(count)]
