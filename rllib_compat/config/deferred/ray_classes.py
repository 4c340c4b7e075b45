"""Classes and functions of Ray, by their names."""

from __future__ import annotations

import ast
import importlib
from typing import Any

from rllib_compat import ray_versions
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.later import PUBLIC, Later, Writer


@frozen
class Imported(Later):
    """A class or function of Ray, by its place."""

    module: str
    name: str

    def build(self) -> Any:
        """Imports it."""
        return getattr(importlib.import_module(self.module), self.name)

    def code(self, writer: Writer) -> ast.expr:
        """Its name."""
        return writer.imported(self.module, self.name)


@frozen
class OldReplayBuffer(Later):
    """A replay buffer class of the old API stack, by its name."""

    name: str

    def build(self) -> type:
        """The class."""
        return ray_versions.old_replay_buffer(self.name)

    def code(self, writer: Writer) -> ast.expr | None:
        """The call that makes it."""
        function = writer.imported(PUBLIC, "old_replay_buffer")
        return writer.call(function, self.name)
