"""Which of tox's environments a push runs: `TOXENV=$(python -m tests.ray_releases.on_a_push) tox`.

The newest Ray in full, of the oldest what starts Ray, and of those between them two, which the
commit's hash chooses; all four where the last day's commits changed what touches Ray most.
"""

from __future__ import annotations

import itertools
import subprocess

ALWAYS = ("lint", "types", "docs", "ray260", "ray240-integration")
BETWEEN = ("ray244-subset", "ray248-subset", "ray252-subset", "ray256-subset")
TOUCHES_RAY = (
    "rllib_compat/ray_versions",
    "rllib_compat/runtime",
    "rllib_compat/algorithms",
    "rllib_compat/conversion/write",
)


def environments(commit: str, *, touches_ray: bool) -> tuple[str, ...]:
    """The environments of a push.

    Args:
        commit: The hash of its last commit.
        touches_ray: Whether it changed what touches Ray most.
    """
    pairs = list(itertools.combinations(BETWEEN, 2))
    return ALWAYS + (BETWEEN if touches_ray else pairs[int(commit, 16) % len(pairs)])


def changed_within_a_day() -> str:
    """The files that the last commit and those of the 24 hours before it changed, of `TOUCHES_RAY`.

    Where the history is not there, as in a shallow clone, these are all files.
    """
    last = int(_git("log", "-1", "--format=%ct"))
    since = f"--since={last - 24 * 3600}"
    return _git("log", since, "--name-only", "--format=", "--", *TOUCHES_RAY)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    chosen = environments(_git("rev-parse", "HEAD"), touches_ray=bool(changed_within_a_day()))
    print(",".join(chosen))
