"""Runs what Ray would run in other processes in this one, without a cluster.

`use_one_process()` has to be called before rllib is imported. Actors are objects here, tasks are
calls, and references hold values: a config that starts workers is tried in two seconds. What only
processes show (pickling, restarts, what runs beside what) is not tried. Ray Data needs a cluster,
and so have algorithms that learn from recordings.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import ray
import ray.actor
import ray.data  # before it is changed: it takes Ray as it comes
import ray.util

NODE = "ab" * 28
RESOURCES = {"CPU": 4.0}


class Reference:
    """What stands for a value: that, or the error that came in its place."""

    def __init__(self, value: Any = None, error: Exception | None = None) -> None:
        self._value, self._error, self._name = value, error, uuid.uuid4().hex

    def hex(self) -> str:
        """Its name."""
        return self._name

    def get(self) -> Any:
        """The value."""
        if self._error is not None:
            raise self._error
        return self._value


def _get(given: Any) -> Any:
    return given.get() if isinstance(given, Reference) else given


class Call:
    """A function, or a method of an actor, as Ray wants it to be called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def options(self, **_: object) -> Call:
        """Itself: there is one place to run it."""
        return self

    def remote(self, *args: Any, **kwargs: Any) -> Reference:
        """Calls it."""
        named = {name: _get(value) for name, value in kwargs.items()}
        try:
            return Reference(self._function(*map(_get, args), **named))
        except Exception as error:  # it is raised where somebody asks for the value
            return Reference(error=error)


class Actor:
    """An object by the handle that Ray gives for it. A copy is the same one."""

    #: All there are, for pickles of their handles.
    all: ClassVar[dict[str, Actor]] = {}

    def __init__(self, of: Any) -> None:
        self._object, self._actor_id, self._is_dead = of, Reference(), False
        self.all[self._actor_id.hex()] = self

    def __class_getitem__(cls, _: object) -> type:
        return cls

    def __getattr__(self, name: str) -> Call:
        own = {
            "__ray_ready__": lambda: True,
            "__ray_terminate__": self.end,
            "__ray_call__": lambda function, *args, **kwargs: function(
                self._object, *args, **kwargs
            ),
        }
        if name not in own and name.startswith("__"):
            raise AttributeError(name)
        return Call(_raise_death if self._is_dead else own.get(name) or getattr(self._object, name))

    def __reduce__(self) -> tuple[Any, ...]:
        return _actor, (self._actor_id.hex(),)

    def __deepcopy__(self, _: object) -> Actor:
        return self

    def end(self, **_: object) -> None:
        """Lets it answer no more."""
        self._is_dead = True


def _actor(name: str) -> Actor:
    return Actor.all[name]


def _raise_death(*_: object, **__: object) -> None:
    raise ray.exceptions.RayActorError


class ActorClass:
    """A class whose objects are actors."""

    def __init__(self, of: type) -> None:
        self._class = of
        self.__ray_metadata__ = SimpleNamespace(modified_class=of)

    def options(self, **_: object) -> ActorClass:
        """Itself."""
        return self

    def remote(self, *args: Any, **kwargs: Any) -> Actor:
        """Makes one."""
        named = {name: _get(value) for name, value in kwargs.items()}
        return Actor(self._class(*map(_get, args), **named))


def _remote(*given: Any, **options: object) -> Any:
    if options or not given:
        return _remote
    return ActorClass(given[0]) if inspect.isclass(given[0]) else Call(given[0])


def _get_all(given: Any, **_: object) -> Any:
    return [_get(one) for one in given] if isinstance(given, Sequence) else _get(given)


def _wait(references: Sequence[Any], num_returns: int = 1, **_: object) -> tuple[Any, Any]:
    return list(references[:num_returns]), list(references[num_returns:])


def _no_actor(name: str, *_: object, **__: object) -> None:
    raise ValueError(name)


def use_one_process() -> None:
    """Puts these in the place of Ray's."""
    context = SimpleNamespace(
        get_node_id=lambda: NODE,
        get_actor_id=lambda: None,
        get_actor_name=lambda: None,
        get_accelerator_ids=lambda: {"GPU": []},
        gcs_address="",
        namespace="",
        worker=SimpleNamespace(mode=0),
    )
    instead = {
        "ObjectRef": Reference,
        "available_resources": RESOURCES.copy,
        "cluster_resources": RESOURCES.copy,
        "get": _get_all,
        "get_actor": _no_actor,
        "get_gpu_ids": list,
        "get_runtime_context": lambda: context,
        "init": lambda *_, **__: None,
        "is_initialized": lambda: True,
        "kill": Actor.end,
        "nodes": lambda: [{"NodeID": NODE, "Alive": True, "Resources": RESOURCES}],
        "put": lambda value, **_: Reference(value),
        "remote": _remote,
        "wait": _wait,
    }
    for name, ours in instead.items():
        setattr(ray, name, ours)
    ray.actor.ActorHandle = Actor
    ray.util.get_current_placement_group = lambda: None
