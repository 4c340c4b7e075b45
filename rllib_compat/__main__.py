"""`python -m rllib_compat` is `rllib-compat`."""

import os
import sys

if __name__ == "__main__":
    # `-m` puts the working directory first on the path, where a file that came with an untrusted
    # checkpoint could replace any module.
    if sys.path[0] == os.getcwd() and not getattr(sys.flags, "safe_path", False):  # noqa: PTH109
        del sys.path[0]

    from rllib_compat.cli import main

    main()
