"""Arguments that are one of a few texts."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from rllib_compat.neutral.errors import ConfigError


def require_one_of(choices: Sequence[str], **given: object) -> None:
    """Checks arguments, by name.

    Raises:
        ConfigError: One is none of the choices.
    """
    for name, value in given.items():
        if value not in choices:
            raise ConfigError(
                f"{name} cannot be {value!r}.", where=name, fix=f"Use one of {', '.join(choices)}."
            )


class Form(Enum):
    """The form of what a conversion writes."""

    #: A Checkpointable tree of an algorithm, from which training continues.
    ALGORITHM = "algorithm"
    #: Only the RLModules of such a tree, for inference.
    MODULES = "modules"
    #: The neutral state, which needs no Ray.
    MSGPACK = "msgpack"
    #: The networks as ONNX models.
    ONNX = "onnx"
    #: The networks' arrays as safetensors.
    SAFETENSORS = "safetensors"
    #: One policy, in one file.
    POLICY = "policy"
    #: safetensors with a model card, for sharing.
    HUB = "hub"


#: The forms for the installed Ray.
OF_RAY = (Form.ALGORITHM, Form.MODULES)
#: What `to` of `convert` can be, and `state_format`.
FORMS = ("checkpointable", *(form.value for form in Form if form not in OF_RAY))
STATE_FORMATS = ("pkl", "msgpack")
