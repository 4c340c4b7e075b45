"""What nested dicts and specs of Ray 2.3.1 do.

The modules need nothing else of Ray: a folder with them is enough.
"""

import numpy as np
import torch
from ray.rllib.models.specs.checker import check_input_specs, check_output_specs
from ray.rllib.models.specs.specs_base import TypeSpec
from ray.rllib.models.specs.specs_dict import SpecDict
from ray.rllib.models.specs.specs_np import NPTensorSpec
from ray.rllib.models.specs.specs_torch import TorchTensorSpec
from ray.rllib.utils.nested_dict import NestedDict, StrKey


def outcome(call, *arguments, **by_name):
    """What a call gives, or the kind of its error."""
    try:
        return str(call(*arguments, **by_name))
    except Exception as error:
        return type(error).__name__


def of_dicts():
    made = NestedDict({"a": 1, "b": {"c": 2, "d": {"e": 3}}})
    made["b", "f"] = 4
    made["x"] = {}
    yield from (len(made), list(made), list(made.keys()), list(made.items()), made.asdict())
    yield from (made["b", "d", "e"], made["b", ("d", "e")], type(made["b"]).__name__)
    yield from (("b", "c") in made, "b" in made, ("b", "x") in made, ("a", "x") in made)
    yield from (outcome(made.get, "y"), made.get("y", 5), outcome(lambda: made["y"]))
    yield from (outcome(made.__setitem__, "", 1), outcome(NestedDict, 3), str(made), repr(made))
    yield from (list(made.shallow_keys()), made.copy().asdict(), NestedDict(made).asdict())
    yield made.filter(NestedDict({"b": {"c": 0}})).asdict()
    yield made.filter([("a",), ("b", "d")]).asdict()
    yield from (outcome(made.filter, ["y"]), made.filter(["y", "a"], ignore_missing=True).asdict())
    del made["b", "d", "e"]
    yield made.asdict()
    yield outcome(made.__delitem__, ("b", "z"))
    yield NestedDict([(("p", "q"), 1), ("r", 2)]).asdict()
    yield from (StrKey("a") < ("b",), StrKey("a") < "b", StrKey("c") > ("b", "z"))


def of_specs():
    for kind, full in ((TorchTensorSpec, torch.ones), (NPTensorSpec, np.ones)):
        dtype = torch.float32 if kind is TorchTensorSpec else np.float32
        spec = kind("B, T, h", h=4, dtype=dtype)
        yield from (spec.shape, spec.full_shape, spec.rdrop(1).shape, spec.append(kind("k")).shape)
        yield from (list(spec.fill(2).shape), float(spec.fill(2).sum()), spec == kind("B, T, h"))
        yield from (spec == kind("B,T,h", h=4, dtype=dtype), repr(spec).split(", dtype")[0])
        data = full((2, 3, 4), dtype=dtype)
        yield outcome(spec.validate, data)
        for wrong in (full((2, 4), dtype=dtype), full((2, 3, 5), dtype=dtype), data > 0, [1], None):
            yield outcome(spec.validate, wrong)
        yield from (outcome(kind, "a, a"), outcome(kind, "a", b=3), outcome(kind, "a", a=0))
        yield outcome(kind, "a", a=1.5)
    spec = SpecDict(
        {"a": TypeSpec(int), "b": {"c": TorchTensorSpec("n", n=2), "d": str, "e": None}}
    )
    good = {"a": 1, "b": {"c": torch.ones(2), "d": "text", "e": []}}
    for data in (
        good,
        {**good, "more": 1},
        {"a": 1},
        {**good, "a": "x"},
        {"a": 1, "b": {"c": torch.ones(3), "d": "text", "e": 1}},
        {"a": 1, "b": {"c": torch.ones(2), "d": 3, "e": 1}},
    ):
        yield from (outcome(spec.validate, data), outcome(spec.validate, data, exact_match=True))
    yield from (len(spec), TypeSpec(int) == TypeSpec(int), TypeSpec(int) == TypeSpec(str))


class Module:
    """What has methods that are checked."""

    seen = ["a", ("b", "c")]  # noqa: RUF012
    given = {"x": int}  # noqa: RUF012
    number = int

    @check_input_specs("seen")
    def plain(self, data):
        return sorted(map(str, data))

    @check_input_specs("seen", filter=True, cache=True)
    def filtered(self, data):
        return data.asdict()

    @check_output_specs("given")
    def output(self, data):
        return data

    @check_output_specs("given", cache=True)
    def once(self, data):
        return data

    @check_input_specs("nothing")
    def unknown(self, data):
        return data

    @check_input_specs("number")
    def one(self, data):
        return data


def of_methods():
    module, data = Module(), {"a": 1, "b": {"c": 2}, "d": 3}
    yield from (outcome(module.plain, data), outcome(module.plain, {"a": 1}))
    yield from (outcome(module.plain, 3), outcome(module.filtered, data))
    yield from (outcome(module.filtered, {"a": 4, "b": {"c": 5}, "z": 1}),)
    yield from (outcome(module.output, {"x": 1}), outcome(module.output, {"x": "y"}))
    yield from (outcome(module.once, {"x": 1}), outcome(module.once, {"x": "y"}))
    yield from (outcome(module.unknown, 1), outcome(module.one, 1), outcome(module.one, "x"))
    yield Module.plain.__checked_input_specs__


def of_all(found):
    for name, values in (("dicts", of_dicts()), ("specs", of_specs()), ("methods", of_methods())):
        found[name] = [str(told) for told in values]


QUESTIONS = (of_all,)
