"""Names of environments."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from rllib_compat.config.values.door import Door, Origin
from rllib_compat.config.values.kinds import LONGEST_WORD, Kind
from rllib_compat.neutral.frozen import frozen


@frozen(eq=False)
class EnvName(Kind):
    """The name that an environment is registered under, with Tune or with gymnasium.

    A user may write `module:Class`, a path of a class or any other text. A name from a file is
    taken only if neither Ray nor gymnasium could import or open anything that it says: no dot, no
    colon, at most one namespace.
    """

    #: Environments of gymnasium whose arguments say which environment they make, modules included.
    MAKERS: ClassVar[tuple[str, ...]] = ("GymV21Environment-v0", "GymV26Environment-v0")

    _PLAIN: ClassVar[re.Pattern[str]] = re.compile(r"[\w -]+(?:/[\w -]+)?")

    def describe(self) -> str:  # noqa: D102
        return "the name of a registered environment"

    def suits(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, str)

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if not self.suits(value):
            return door.refuse(path, value, self)
        if door.origin is Origin.USER or self.plain(value):
            return value
        return door.own(path, value, ENV_CODE)

    @classmethod
    def plain(cls, name: str) -> bool:
        """Whether a name is only a name: nothing that an import could come of."""
        if len(name) > LONGEST_WORD or name.rpartition("/")[2] in cls.MAKERS:
            return False
        return cls._PLAIN.fullmatch(name) is not None


@frozen(eq=False)
class _EnvCode(EnvName):
    """An environment that text would import."""

    @property
    def code(self) -> bool:
        return True

    def describe(self) -> str:
        return "an environment that has to be imported"


ENV_CODE = _EnvCode()
