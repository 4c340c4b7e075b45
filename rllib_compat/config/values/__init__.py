"""The declarations of values that rules share, by name.

Numbers have the range in which they mean something. Where a number says how many of a thing are
made when the config is used, a file may ask for a bounded number of them (`max_from_file`).
"""

from __future__ import annotations

from rllib_compat.config.values.containers import (
    Config,
    Data,
    Fields,
    Layers,
    ListOf,
    Policies,
    Row,
    Space,
    Table,
)
from rllib_compat.config.values.kinds import (
    Choice,
    EnvName,
    Flag,
    Integer,
    Name,
    Number,
    Unread,
    UserOnly,
)
from rllib_compat.registry.keys import CALLBACK_EVENTS

FLAG = Flag()
#: Nothing is set by the key, and nothing reads its value.
UNREAD = Unread()

# Numbers
NUMBER = Number()
NONNEGATIVE = Number(0)
FRACTION = Number(0, 1)
#: A fraction, of which no Ray asked whether it is one.
FACTOR = Number()
#: A bound, where infinity means that there is none.
BOUND = Number(0, infinite=True)
SECONDS = Number(0, infinite=True)
#: How often something may happen, or at least so much of an iteration; -1: Ray's to say.
LIMIT = Number(-1, infinite=True)
COUNT = Integer(0)
POSITIVE = Integer(1)
INTEGER = Integer()
#: -1 (of a Dreamer) left the size to the algorithm. Ray counts how many fragments make a batch.
BATCH = Number(-1, max_from_file=10_000_000)
LEARNER_BATCH = Integer(1, max_from_file=10_000_000)
#: Environments, processes, threads: what is started when the config is used.
PROCESSES = Integer(0, 1_000_000, max_from_file=1024)
CPUS = Number(0, max_from_file=1024)
#: Entries of a buffer or a queue.
ENTRIES = Integer(1, max_from_file=4_000_000)
#: How long a sequence, a look back or a queue is.
LENGTH = Integer(0, max_from_file=1_000_000)
#: -1 left the length to the model.
SEQUENCE = Integer(-1, max_from_file=1_000_000)
#: A gigabyte of noise, which is the default.
NOISE_TABLE = Integer(1, max_from_file=250_000_000)
ATOMS = Integer(1, max_from_file=10_000)
ACTION_SAMPLES = Integer(1, max_from_file=4096)
AUTO = Choice(("auto",))
FRAGMENT = Integer(1, max_from_file=1_000_000) | AUTO
DURATION = COUNT | AUTO
N_STEP = Integer(1, max_from_file=10_000) | Row((POSITIVE, POSITIVE))

#: `[[step, value], …]`; until Ray 2.x also with the value in a list of its own.
SCHEDULE = ListOf(Row((NONNEGATIVE, NUMBER)))
SCHEDULED = NUMBER | SCHEDULE
SCHEDULED_RATE = NONNEGATIVE | SCHEDULE
SCHEDULED_FRACTION = FRACTION | SCHEDULE

# What only people can give
CODE = UserOnly("a class or a function", (str,), names_code=True)
#: Ray makes it with `from_config`: code, or a dict with code as its `type`.
FROM_CONFIG = UserOnly("a class or a function", (str, dict), names_code=True)
CODES = CODE | ListOf(CODE)
PATHS = UserOnly("a path, or several", (str, list, tuple, dict))
ARGUMENTS = UserOnly("arguments of your own code", (dict,))
TEXT = UserOnly("text", (str,))
#: Variables of the processes that train: they can make Python load anything.
ENVIRONMENT_VARIABLES = UserOnly("environment variables", (dict,))
CALLBACKS = (
    Fields(dict.fromkeys(CALLBACK_EVENTS, CODE), other=CODE)
    | ListOf(CODE)
    | UserOnly("a callbacks class", (str,), names_code=True)
)

# What belongs to the environment
ENV = EnvName() | CODE
#: Data for the constructor of the environment. Ray passes it on, as an `EnvContext` or as keyword
#: arguments of `gymnasium.make`, and looks at none of it; gymnasium looks at `render_mode` and
#: `max_episode_steps`, which are text and number. So text may pass, code and objects may not. Two
#: environments do make something else of text (`kinds.ENV_MAKERS`); they are no name from a file.
ENV_CONFIG = Fields({}, other=Data())
SPACE = Space()
ACTION_MASK = Choice(("action_mask",)) | TEXT
PREPROCESSOR = Choice(("deepmind", "rllib"))

# Env runners, learners and Ray
BATCH_MODE = Choice(("truncate_episodes", "complete_episodes"))
FILTER_NAME = Choice(("NoFilter", "MeanStdFilter", "ConcurrentMeanStdFilter"))
FILTER = FILTER_NAME | CODE
MERGED_STATES = FLAG | Choice(("training_only",))
#: Ray 2.41 – 2.51 have the member's name, all others its value.
VECTORIZE_MODE = Choice(
    ("sync", "async", "vector_entry_point"),
    also={"SYNC": "sync", "ASYNC": "async", "VECTOR_ENTRY_POINT": "vector_entry_point"},
)
RESOURCES = Table(Name("a resource"), CPUS)
PLACEMENT = Choice(("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"))
LOG_LEVEL = Choice(("DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL"))
#: The name of a statistic → the class that computes it.
STATS = Table(Name("a statistic"), CODE)
DURATION_UNIT = Choice(("episodes", "timesteps"))
OFFLINE_EVALUATION = Choice(("eval_loss", "is", "pdis"))

# What torch.compile and DistributedDataParallel take
TENSORFLOW = ("tf", "tf2", "tfe", "tf1")
FRAMEWORK = Choice((*TENSORFLOW, "torch", "jax"))
COMPILED = Choice(("forward_train", "complete_update"))
DYNAMO_BACKEND = Choice(("inductor", "aot_eager", "eager", "cudagraphs", "onnxrt", "ipex", "tvm"))
DYNAMO_MODE = Choice(("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"))
DDP = Fields(
    dict.fromkeys(
        (
            *("broadcast_buffers", "find_unused_parameters", "gradient_as_bucket_view"),
            *("static_graph", "init_sync", "check_reduction"),
        ),
        FLAG,
    )
    | {"bucket_cap_mb": NONNEGATIVE}
)
DISTRIBUTED_BACKEND = Choice(("gloo", "mpi", "nccl"))

# Models
LAYERS = Layers()
SIZE = Integer(1, max_from_file=8192)
UNITS = Integer(1, max_from_file=256)
FRAME_SIZE = Integer(1, max_from_file=4096)
#: How many frames are stacked; -1 where another key says it.
FRAMES = Integer(-1, max_from_file=64)
STACKED_FRAMES = AUTO | FRAMES
PREVIOUS_STEPS = FLAG | Integer(0, max_from_file=1024)
#: A dict whose keys have rules of their own.
SECTION = Config()
MODEL_CONFIG = Config("model", raw=True)
#: The one action distribution that the old models know by a word (Ray 0.8 – 2.x).
ACTION_DISTRIBUTION = Choice(("deterministic",)) | CODE
ACTIVATION = Choice(
    (
        *("linear", "relu", "tanh", "elu", "swish", "silu", "softmax", "sigmoid", "gelu"),
        *("leaky_relu", "selu", "softplus", "ReLU", "Tanh", "ELU", "SiLU", "Sigmoid", "GELU"),
        *("LeakyReLU", "SELU", "Softplus", "Softmax", "Identity", "Mish", "ReLU6", "Hardtanh"),
    )
)
#: Those that this package's own actors and critics have.
OWN_ACTIVATION = Choice(("elu", "linear", "relu", "swish", "tanh"))
INITIALIZER = Choice(
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
        "groups": POSITIVE,
        "mode": Choice(("fan_in", "fan_out")),
        "nonlinearity": Choice(
            (
                *("linear", "conv1d", "conv2d", "conv3d", "sigmoid", "tanh", "relu"),
                *("leaky_relu", "selu"),
            )
        ),
    }
)
_FILTERS = Integer(1, max_from_file=4096)
_KERNEL = _FILTERS | ListOf(_FILTERS, 1, 3)
_PADDING = Choice(("same", "valid")) | Integer(0, max_from_file=4096)
#: `[[filters, kernel, stride], …]`, each with a padding in some releases.
CONV_FILTERS = ListOf(
    Row((_FILTERS, _KERNEL, _KERNEL)) | Row((_FILTERS, _KERNEL, _KERNEL, _PADDING))
)

# Several agents
POLICY = Name("a policy")
POLICIES = Policies(POLICY, CODE, SPACE)
POLICIES_TO_TRAIN = ListOf(POLICY) | CODE
COUNTED_STEPS = Choice(("env_steps", "agent_steps"))
OVERRIDES = Table(POLICY, Config(raw=True))
MIXER = Choice(("qmix", "vdn"))
MADDPG_POLICY = Choice(("maddpg", "ddpg"))

# Losses and updates
CLIPPED_BY = Choice(("value", "norm", "global_norm"))
OPTIMIZER = Choice(("adam", "rmsprop"))
TD_LOSS = Choice(("huber", "mse"))
TD_LOSS_OF_CRR = Choice(("mse", "huber"))
WEIGHT_TYPE = Choice(("bin", "exp"))
ADVANTAGE_TYPE = Choice(("mean", "max", "expectation"))
TARGET_ENTROPY = NUMBER | AUTO
#: TD3's default was once a list of one.
SMOOTH_TARGET = FLAG | Row((FLAG,))
EVOLUTION_POLICY = Choice(("LinearPolicy", "MLPPolicy"))
RANKED = Choice(("centered_rank",))
DREAMER_SIZE = Choice(("nano", "micro", "mini", "XXS", "XS", "S", "M", "L", "XL"))

# Exploration
#: All exploration classes that any RLlib had (`rllib/utils/exploration`).
EXPLORATION_TYPE = (
    Choice(
        (
            *("StochasticSampling", "EpsilonGreedy", "PerWorkerEpsilonGreedy", "Random", "SoftQ"),
            *("GaussianNoise", "PerWorkerGaussianNoise", "OrnsteinUhlenbeckNoise"),
            *("PerWorkerOrnsteinUhlenbeckNoise", "ParameterNoise", "Curiosity", "RE3"),
            *("SlateEpsilonGreedy", "SlateSoftQ", "ThompsonSampling", "UpperConfidenceBound"),
        ),
        classes=True,
    )
    | CODE
)
_EXPLORATION_FRAMEWORK = Choice(("tf", "tf2", "tfe", "torch"))
_EXPLORATION = {
    "type": EXPLORATION_TYPE,
    **dict.fromkeys(("initial_epsilon", "final_epsilon"), FRACTION),
    **dict.fromkeys(
        ("epsilon_timesteps", "warmup_timesteps", "random_timesteps", "scale_timesteps"), COUNT
    ),
    **dict.fromkeys(
        (
            *("stddev", "initial_scale", "final_scale", "initial_stddev", "temperature"),
            *("ou_theta", "ou_sigma", "ou_base_scale", "beta", "eta", "lr", "rho"),
        ),
        NUMBER,
    ),
    **dict.fromkeys(("feature_dim", "embeds_dim", "k_nn"), SIZE),
    **dict.fromkeys(("inverse_net_hiddens", "forward_net_hiddens"), LAYERS),
    **dict.fromkeys(("inverse_net_activation", "forward_net_activation"), ACTIVATION),
    "beta_schedule": Choice(("constant", "linear_decay")),
    "feature_net_config": MODEL_CONFIG,
    "encoder_net_config": MODEL_CONFIG,
    "framework": _EXPLORATION_FRAMEWORK,
    # Ray makes a schedule of it with `from_config`; only points in a row have names here.
    "epsilon_schedule": Fields(
        {
            "type": Choice(("PiecewiseSchedule",)) | CODE,
            "endpoints": SCHEDULED_FRACTION,
            "outside_value": FRACTION,
            "framework": _EXPLORATION_FRAMEWORK,
        }
    )
    | CODE,
    "scale_schedule": CODE,
}
#: Ray passes its `type` to `from_config`, and the rest to the class as arguments. Where one of them
#: explores with the help of another, that one has no helper.
EXPLORATION = Fields({**_EXPLORATION, "sub_exploration": Fields(_EXPLORATION)})
NOISE_TYPE = Choice(("ou", "gaussian"))
PARAMETER_NOISE = FLAG | Fields({"initial_stddev": NUMBER})

# Replay buffers
#: All buffer classes that any RLlib had (`rllib/utils/replay_buffers`).
BUFFER_TYPE = (
    Choice(
        (
            *("EpisodeReplayBuffer", "PrioritizedEpisodeReplayBuffer"),
            *("MultiAgentEpisodeReplayBuffer", "MultiAgentPrioritizedEpisodeReplayBuffer"),
            *("MultiAgentReplayBuffer", "MultiAgentPrioritizedReplayBuffer"),
            *("MultiAgentMixInReplayBuffer", "SimpleReplayBuffer"),
            *("ReplayBuffer", "PrioritizedReplayBuffer", "ReservoirReplayBuffer"),
            *("FifoReplayBuffer", "ReservoirBuffer", "LocalReplayBuffer"),
            "MixInMultiAgentReplayBuffer",
        ),
        classes=True,
    )
    | CODE
)
REPLAY_MODE = Choice(("independent", "lockstep"))
_UNITS = ("timesteps", "sequences", "episodes", "fragments")
STORAGE_UNIT = Choice(_UNITS, also={name.upper(): name for name in _UNITS})
INNER_BUFFER = Fields(
    {
        "type": BUFFER_TYPE,
        "capacity": ENTRIES,
        "storage_unit": STORAGE_UNIT,
        "replay_mode": REPLAY_MODE,
        "replay_sequence_length": SEQUENCE,
        "replay_burn_in": LENGTH,
        **dict.fromkeys(("replay_zero_init_states", "replay_sequence_override"), FLAG),
        **dict.fromkeys(("replay_ratio", "alpha", "beta"), NONNEGATIVE),
        **{f"prioritized_replay_{name}": NONNEGATIVE for name in ("alpha", "beta", "eps")},
    }
)
REPLAY_REQUESTS = Number(1, infinite=True)

# Recorded data lies on the machine of whoever runs it: paths are theirs to give
INPUT = Choice(("sampler",)) | PATHS | CODE
OUTPUT = PATHS | CODE
FILESYSTEM = Choice(("gcs", "s3", "abs")) | CODE
_FORMATS = ("parquet", "json", "csv", "numpy", "tfrecords")
READ_METHOD = Choice(tuple(f"read_{form}" for form in (*_FORMATS, "avro", "binary_files")))
WRITE_METHOD = Choice(tuple(f"write_{form}" for form in _FORMATS))
COLUMNS = ListOf(
    Choice(
        (
            *("obs", "new_obs", "actions", "prev_actions", "rewards", "prev_rewards", "dones"),
            *("infos", "terminateds", "truncateds", "action_logp", "action_prob", "vf_preds"),
            *("advantages", "value_targets", "action_dist_inputs", "state_in", "state_out", "all"),
        )
    )
)
