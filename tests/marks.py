"""What whole files of integration tests are marked with."""

import pytest

#: They build trainers. The warnings are Ray's, gymnasium's and torch's own; none is ours to mend.
TRAINERS = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: They convert checkpoints and load them, all in one small Ray (of `CPUS`, a file's own number).
CONVERSIONS = [pytest.mark.ray, pytest.mark.usefixtures("small_ray", "rays_own_warnings")]
