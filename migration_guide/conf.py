"""The guide's Sphinx settings. Building it needs neither Ray nor this package."""

from __future__ import annotations

import os
import re
from pathlib import Path

_PYPROJECT = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
_VERSION = re.search(r'^version = "(.+)"', _PYPROJECT, re.MULTILINE)
assert _VERSION is not None

project = "rllib-compat"
author = "the rllib-compat authors"
release = _VERSION[1]
version = release

extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["guide.css"]
html_js_files = ["guide.js"]
html_title = f"rllib-compat {release}"
# Where the guide is built from a public repository, each page has a link to edit it there.
if _repository := os.environ.get("GITHUB_REPOSITORY"):
    html_theme_options = {
        "source_repository": f"https://github.com/{_repository}/",
        "source_branch": "main",
        "source_directory": "migration_guide/",
    }

# Shell prompts are shown, and left out when a block is copied.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
