"""`python -m rllib_compat` is `rllib-compat`."""

from rllib_compat.cli import main

if __name__ == "__main__":
    main()
