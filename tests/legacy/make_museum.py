"""Run generate.py on real old Rays: one throw-away environment for each.

    python tests/legacy/make_museum.py --envs /tmp/old-rays --out /tmp/museum --ray 0.8.5 2.0.1

A Ray's recipe is `recipes/<ray>.txt`: a complete pip requirements file (installed with --no-deps,
so nothing is resolved and nothing can drift), and three comments at its head that name the Python,
the tools that can still build its packages, and the frameworks to train with. The old Pythons come
from pyenv or the PATH.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECIPES = {path.stem: path for path in (HERE / "recipes").glob("*.txt")}


@dataclass(frozen=True)
class Recipe:
    """What an old Ray needs to run today.

    Attributes:
        path: The requirements file.
        python: The Python's minor version, such as `"3.7"`.
        tools: Pins of pip, setuptools and wheel.
        frameworks: What to train with: `tf`, `tf2`, `torch`.
    """

    path: Path
    python: str
    tools: list[str]
    frameworks: list[str]

    @classmethod
    def read(cls, path: Path) -> Recipe:
        """Read a recipe's head, lines like `# python: 3.7`."""
        lines = (line for line in path.read_text("utf-8").splitlines() if line.startswith("# "))
        head = dict(line[2:].split(": ", 1) for line in lines)
        return cls(path, head["python"], head["tools"].split(), head["frameworks"].split())

    def interpreter(self) -> str:
        """An installed Python of the right version."""
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
        installed = sorted(pyenv.glob(f"versions/{self.python}.*/bin/python"))
        found = str(installed[-1]) if installed else shutil.which(f"python{self.python}")
        if not found:
            sys.exit(f"{self.path.stem} needs Python {self.python}: pyenv install {self.python}")
        return found

    def environment(self, folder: Path) -> Path:
        """The Python of this recipe's environment, which is made if it is missing or outdated."""
        python, mark = folder / "bin" / "python", folder / "recipe.txt"
        if not (mark.exists() and mark.read_bytes() == self.path.read_bytes()):
            run(self.interpreter(), "-m", "venv", "--clear", folder)
            run(python, "-m", "pip", "install", "--quiet", *self.tools)
            run(python, "-m", "pip", "install", "--quiet", "--no-deps", "-r", self.path)
            shutil.copy(self.path, mark)
        return python


def run(*command: str | Path) -> None:
    """Run a command from here, so that what Ray pickles names generate.py without a folder."""
    print("$", *command, flush=True)
    subprocess.run(command, cwd=HERE, check=True)


def main() -> int:
    """Make the environments and the cases; the exit status says whether all of them succeeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=Path, required=True, help="where the environments are kept")
    parser.add_argument("--out", type=Path, required=True, help="where the cases go")
    parser.add_argument("--ray", nargs="+", choices=sorted(RECIPES), default=sorted(RECIPES))
    parser.add_argument("--framework", nargs="+", choices=["tf", "tf2", "torch"])
    parser.add_argument("--cases", nargs="+", default=[])
    args = parser.parse_args()
    cases = ["--cases", *args.cases] if args.cases else []
    failed = []
    for ray in args.ray:
        recipe = Recipe.read(RECIPES[ray])
        for framework in recipe.frameworks:
            if args.framework and framework not in args.framework:
                continue
            try:
                python = recipe.environment(args.envs.absolute() / ray)
                out = args.out.absolute()
                run(python, "generate.py", out, "--framework", framework, *cases)
            except subprocess.CalledProcessError:
                failed.append(f"{ray} {framework}")
    print("failed:", ", ".join(failed) or "none")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
