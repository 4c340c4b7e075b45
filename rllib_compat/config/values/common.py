"""The declarations that many rules share.

Numbers have the range in which they mean something. Where a number says how many of a thing are
made when the config is used, a file may ask for an ample, but bounded number of them.
"""

from __future__ import annotations

from rllib_compat.config.values.containers import (
    Config,
    Data,
    Fields,
    Layers,
    ListOf,
    Name,
    Policies,
    Row,
    SpaceOf,
    Table,
)
from rllib_compat.config.values.environments import EnvName
from rllib_compat.config.values.kinds import Flag, Number, Whole, Words, Yours
from rllib_compat.runtime.events import DICT_EVENTS

FLAG = Flag()

# Numbers
NUMBER = Number()
AMOUNT = Number(0)
SHARE = Number(0, 1)
#: A bound, where infinity means that there is none.
BOUND = Number(0, infinite=True)
SECONDS = Number(0, infinite=True)
RATE = Number(0)
COUNT = Whole(0)
SOME = Whole(1)
STEPS = Whole(0)
#: Environments, processes, threads: what is started when the config is used.
STARTED = Whole(0, ample=1024)
CPUS = Number(0, ample=1024)
#: Entries of a buffer or a queue.
ENTRIES = Whole(1, ample=4_000_000)
#: How long a sequence, a look back or a queue is.
LENGTH = Whole(0, ample=1_000_000)
#: After how many steps something is cut; 0 and infinity: never.
LIMIT_STEPS = Number(0, infinite=True)
#: How often something may happen; -1 and infinity: without a limit.
LIMIT = Number(-1, infinite=True)
#: At least so many seconds or steps an iteration; -1 left it to Ray.
MINIMUM = Number(-1, infinite=True)
AUTO = Words(("auto",))

#: `[[step, value], …]`; until Ray 2.x also with the value in a list of its own.
SCHEDULE = ListOf(Row((Number(0), NUMBER)))
SCHEDULED = NUMBER | SCHEDULE
SCHEDULED_RATE = RATE | SCHEDULE
SCHEDULED_SHARE = SHARE | SCHEDULE

# What only people can give
CODE = Yours("a class or a function", (str,), names_code=True)
#: Ray makes it with `from_config`: code, or a dict with code as its `type`.
MADE = Yours("a class or a function", (str, dict), names_code=True)
CODES = CODE | ListOf(CODE)
PATHS = Yours("a path, or several", (str, list, tuple, dict))
ARGUMENTS = Yours("arguments of your own code", (dict,))
TEXT = Yours("text", (str,))
CALLBACKS = (
    Fields(dict.fromkeys(DICT_EVENTS, CODE), other=CODE)
    | ListOf(CODE)
    | Yours("a callbacks class", (str,), names_code=True)
)

# What belongs to the environment
ENV = EnvName() | CODE
#: Data for the constructor of the environment. Ray hands it on, as an `EnvContext` or as keyword
#: arguments of `gymnasium.make`, and looks at none of it; gymnasium looks at `render_mode` and
#: `max_episode_steps`, which are text and number. So text may pass, code and objects may not. Two
#: environments do make something else of text (`EnvName.MAKERS`); they are no name from a file.
ENV_CONFIG = Fields({}, other=Data())
SPACE = SpaceOf()

# Models
LAYERS = Layers()
CELL = Whole(1, ample=8192)
#: A dict whose keys have rules of their own.
SECTION = Config()
ACTIVATION = Words(
    (
        *("linear", "relu", "tanh", "elu", "swish", "silu", "softmax", "sigmoid", "gelu"),
        *("leaky_relu", "selu", "softplus", "ReLU", "Tanh", "ELU", "SiLU", "Sigmoid", "GELU"),
        *("LeakyReLU", "SELU", "Softplus", "Softmax", "Identity", "Mish", "ReLU6", "Hardtanh"),
    )
)
INITIALIZER = Words(
    (
        *("uniform_", "normal_", "constant_", "ones_", "zeros_", "eye_", "dirac_", "orthogonal_"),
        *("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"),
        *("trunc_normal_", "sparse_"),
        *("uniform", "normal", "constant", "zeros", "xavier_uniform", "glorot_uniform"),
    )
)
#: Keyword arguments of torch's initializers.
INITIALIZER_ARGUMENTS = Fields(
    {
        **dict.fromkeys(("a", "b", "mean", "std", "val", "gain", "sparsity"), NUMBER),
        "groups": SOME,
        "mode": Words(("fan_in", "fan_out")),
        "nonlinearity": Words(
            (
                "linear",
                "conv1d",
                "conv2d",
                "conv3d",
                "sigmoid",
                "tanh",
                "relu",
                "leaky_relu",
                "selu",
            )
        ),
    }
)
_SIZE = Whole(1, ample=4096)
_KERNEL = _SIZE | ListOf(_SIZE, 1, 3)
_PADDING = Words(("same", "valid"))
#: `[[filters, kernel, stride], …]`, each with a padding in some releases.
CONV_FILTERS = ListOf(
    Row((_SIZE, _KERNEL, _KERNEL)) | Row((_SIZE, _KERNEL, _KERNEL, _PADDING | Whole(0, ample=4096)))
)

# Several agents
POLICY = Name("a policy")
POLICY_CLASS = CODE
POLICIES = Policies(POLICY, POLICY_CLASS, SPACE)
RESOURCES = Table(Name("a resource"), CPUS)
