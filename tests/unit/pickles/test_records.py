"""Spaces, filters and other records of RLlib, of every era."""

import collections
import datetime
import pathlib
import pickle
import pickletools

import gymnasium
import numpy as np
import pytest
from packaging.version import Version

from rllib_compat.errors import CorruptCheckpointError
from rllib_compat.formats import load_pickle
from rllib_compat.neutral import StandIn, spaces
from tests.unit.pickles.assembler import (
    BUILD,
    NONE,
    STOP,
    call,
    items,
    listed,
    mapped,
    named,
    number,
    text,
)

G = gymnasium.spaces
SPACES = [
    G.Box(-1, 1, (3,), np.float32),
    G.Box(0, 255, (4, 4, 2), np.uint8),
    G.Box(-np.inf, np.inf, ()),
    G.Discrete(5),
    G.Discrete(3, start=-1),
    G.MultiDiscrete([3, 4, 5]),
    G.MultiBinary(4),
    G.MultiBinary([2, 3]),
    G.Tuple([G.Discrete(2), G.Box(0, 1, (2,))]),
    G.Dict({"b": G.Discrete(2), "a": G.Tuple([G.MultiBinary(3)])}),
]


@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("seeded", [True, False])
def test_spaces_of_gymnasium_are_read(space, protocol, seeded):
    if seeded:
        space.seed(1)
    loaded = load_pickle(pickle.dumps({"space": space}, protocol))
    assert loaded.value["space"] == spaces.from_object(space)
    assert not loaded.unknown


def state_of(**attributes):
    return mapped(*((text(name), code) for name, code in attributes.items()))


def bounds(value, dtype="f4"):
    # No memo, so that several may stand in one pickle.
    data = pickle.dumps(np.full(2, value, dtype), 0)
    return pickletools.optimize(data)[:-1]


def an_object(module, name, state):
    return named(module, name) + b")\x81" + state + BUILD


BOX = state_of(low=bounds(-1.0), high=bounds(1.0))
ERAS = {
    "before dtypes": ("gym.spaces.box", "Box", BOX, spaces.box(-1, 1, (2,))),
    "a dtype by name": (
        "gym.spaces",
        "Box",
        state_of(low=bounds(0, "u1"), high=bounds(9, "u1"), dtype=text("uint8")),
        spaces.box(0, 9, (2,), "uint8"),
    ),
    "a dtype by class": (
        "gymnasium.spaces.box",
        "Box",
        state_of(low=bounds(0.0), high=bounds(9.0), dtype=named("numpy", "float32")),
        spaces.box(0, 9, (2,)),
    ),
    "without a start": (
        "gym.spaces.discrete",
        "Discrete",
        state_of(n=number(4)),
        spaces.Discrete(4),
    ),
    "a tuple space": (
        "gym.spaces.tuple_space",
        "Tuple",
        state_of(spaces=listed(an_object("gym.spaces.box", "Box", BOX))),
        spaces.TupleSpace((spaces.box(-1, 1, (2,)),)),
    ),
    "a dict space": (
        "gym.spaces.dict_space",
        "Dict",
        state_of(spaces=mapped((text("x"), an_object("gym.spaces.box", "Box", BOX)))),
        spaces.DictSpace({"x": spaces.box(-1, 1, (2,))}),
    ),
    "ranges of integers": (
        "gym.spaces.multi_discrete",
        "MultiDiscrete",
        state_of(low=bounds(0, "i4"), high=bounds(4, "i4")),
        spaces.MultiDiscrete((5, 5)),
    ),
}


@pytest.mark.parametrize("era", ERAS.values(), ids=ERAS)
def test_spaces_of_old_gyms_are_read(era):
    module, name, state, wanted = era
    assert load_pickle(an_object(module, name, state) + STOP).value == wanted


def test_the_original_space_of_a_preprocessor_is_kept():
    state = state_of(
        low=bounds(-1.0),
        high=bounds(1.0),
        original_space=an_object("gym.spaces.discrete", "Discrete", state_of(n=number(2))),
    )
    box = load_pickle(an_object("gym.spaces.box", "Box", state) + STOP).value
    assert box.original_space == spaces.Discrete(2)


def test_a_space_with_parts_of_a_user_becomes_a_record():
    state = state_of(spaces=items(call("my.spaces", "Graph")))
    loaded = load_pickle(an_object("gym.spaces.tuple", "Tuple", state) + STOP)
    assert isinstance(loaded.value, StandIn)
    assert set(loaded.unknown) == {"my.spaces.Graph", "gym.spaces.tuple.Tuple"}


@pytest.mark.parametrize(
    ("name", "state"),
    {
        "Box": state_of(low=bounds(0.0)),
        "Discrete": state_of(n=text("x")),
        "MultiDiscrete": state_of(nvec=text("x")),
        "MultiBinary": state_of(n=text("12")),
        "Tuple": state_of(),
        "Dict": listed(),
    }.items(),
)
def test_a_space_that_contradicts_itself_is_told(name, state):
    with pytest.raises(CorruptCheckpointError):
        load_pickle(an_object("gym.spaces", name, state) + STOP)


FILTER = "ray.rllib.utils.filter"


def running_stat(names, count):
    values = (number(count), bounds(count, "f8"), bounds(4.0 * count, "f8"))
    return an_object(FILTER, "RunningStat", state_of(**dict(zip(names, values, strict=True))))


NAMES = {
    "0.5": ("_n", "_M", "_S"),
    "2.1": ("num_pushes", "mean_array", "std_array"),
    "2.44": ("num_pushes", "mean_array", "sum_sq_diff_array"),
}


@pytest.mark.parametrize("attribute", ["rs", "running_stats"])
@pytest.mark.parametrize("kind", ["MeanStdFilter", "ConcurrentMeanStdFilter"])
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_filters_of_every_ray_are_read(names, kind, attribute):
    state = state_of(
        demean=b"\x88", destd=b"\x89", clip=number(10), **{attribute: running_stat(names, 5)}
    )
    made = load_pickle(an_object(FILTER, kind, state) + STOP).value
    assert (made.kind, made.demean, made.destd, made.clip) == (kind, True, False, 10.0)
    (stat,) = made.stats
    assert stat.count == 5
    np.testing.assert_array_equal(stat.mean, [5, 5])
    np.testing.assert_array_equal(stat.m2, [20, 20])


def test_the_statistics_of_nested_observations_are_in_the_order_of_tree():
    def stat(count):
        return running_stat(NAMES["2.1"], count)

    nested = items(
        stat(1), mapped((text("z"), stat(4)), (text("a"), listed(stat(2), stat(3)))), stat(5)
    )
    made = load_pickle(
        an_object(FILTER, "MeanStdFilter", state_of(running_stats=nested)) + STOP
    ).value
    assert [stat.count for stat in made.stats] == [1, 2, 3, 4, 5]


def test_a_filter_without_state_is_read():
    for made in (call(FILTER, "NoFilter"), an_object(FILTER, "NoFilter", mapped())):
        assert load_pickle(made + STOP).value.kind == "NoFilter"


def test_policy_specs_tell_their_attributes_in_all_eras():
    module = "ray.rllib.policy.policy"
    tupled = named(module, "PolicySpec") + items(NONE, text("o"), text("a"), mapped()) + b"\x81"
    stated = an_object(
        module,
        "PolicySpec",
        state_of(
            policy_class=NONE,
            observation_space=text("o"),
            action_space=text("a"),
            config=mapped(),
        ),
    )
    for made in (tupled, stated):
        spec = load_pickle(made + STOP).value
        assert spec.state == {
            "policy_class": None,
            "observation_space": "o",
            "action_space": "a",
            "config": {},
        }


@pytest.mark.parametrize("value", ["1.0", "2.1.0rc1", "2!1.0.post2.dev3+cpu.5"])
def test_versions_are_texts(value):
    assert load_pickle(pickle.dumps(Version(value))).value == value


def test_versions_of_old_packagings_are_texts():
    parts = call(
        "packaging.version",
        "_Version",
        number(0),
        items(number(2), number(1)),
        items(text("dev"), number(3)),
        items(text("rc"), number(1)),
        NONE,
        items(text("cpu")),
    )
    old = an_object("packaging.version", "Version", state_of(_version=parts, _key=NONE))
    slots = state_of(_epoch=number(0), _release=items(number(2), number(1)), _pre=NONE)
    slots = slots[:-1] + b"".join(text(f"_{n}") + NONE for n in ("post", "dev", "local")) + b"d"
    newer = an_object("packaging.version", "Version", items(NONE, slots))
    assert load_pickle(old + STOP).value == "2.1rc1.dev3+cpu"
    assert load_pickle(newer + STOP).value == "2.1"


@pytest.mark.parametrize("protocol", range(6))
def test_values_of_the_standard_library_are_read(protocol):
    zone = datetime.timezone(datetime.timedelta(hours=2))
    for value in (
        datetime.datetime(2020, 2, 29, 23, 59, 58, 123456, zone, fold=1),
        datetime.time(1, 2, 3, 4, zone),
        datetime.timezone.utc,
        pathlib.PurePosixPath("/old/results"),
        collections.deque([1, 2], 3),
    ):
        data = pickle.dumps(value, protocol)
        loaded = load_pickle(data)
        assert loaded.value == value
        # Both hours of a night with a change of the clock are equal to Python.
        assert repr(loaded.value) == repr(pickle.loads(data))
        assert not loaded.unknown
    assert load_pickle(pickle.dumps(pathlib.Path("a/b"), protocol)).value == pathlib.PurePath("a/b")


@pytest.mark.parametrize("protocol", range(6))
def test_a_default_dict_is_a_dict_whose_factory_is_not_called(protocol):
    counters = collections.defaultdict(int, {"num_env_steps": 4})
    loaded = load_pickle(pickle.dumps(counters, protocol)).value
    assert type(loaded) is dict
    assert loaded == {"num_env_steps": 4}


@pytest.mark.parametrize("protocol", range(6))
def test_objects_of_users_are_records_with_their_parts(protocol):
    loaded = load_pickle(pickle.dumps(Env(), protocol))
    assert loaded.value.state == {"size": 3}
    assert loaded.unknown == {f"{__name__}.Env": 1}


class Env:
    def __init__(self):
        self.size = 3


class Named(dict):
    pass


@pytest.mark.parametrize("protocol", range(2, 6))
def test_dicts_of_users_are_records_with_their_pairs(protocol):
    loaded = load_pickle(pickle.dumps(Named(a=1), protocol)).value
    assert isinstance(loaded, StandIn)
    assert loaded.pairs == [("a", 1)]
