"""What whole files of integration tests are marked with."""

import pytest

#: Ray's, gymnasium's and torch's own; none is ours to mend.
OTHERS_WARNINGS = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

#: They build trainers.
TRAINERS = [
    pytest.mark.ray,
    *OTHERS_WARNINGS,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: They convert checkpoints and load them, all in one small Ray (of `CPUS`, a file's own number).
CONVERSIONS = [pytest.mark.ray, pytest.mark.usefixtures("small_ray", "rays_own_warnings")]
