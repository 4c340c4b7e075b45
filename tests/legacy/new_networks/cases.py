"""The configs whose new networks were recorded; old Rays (Python 3.7) and tests read them.

A case is (algorithm, observations, actions, config), by name.
"""


def image(*shape):
    return ["Box", 0, 255, list(shape), "uint8"]


def vector(*shape):
    return ["Box", -1.0, 1.0, list(shape), "float32"]


def alike(model):
    """What SAC's policy and critics say where both say the same."""
    return {"Q_model": model, "policy_model": model}


def by_name(configs):
    """Configs by name with the spaces that they are for, out of such by spaces."""
    found = {}
    for spaces, of_spaces in configs.items():
        spaces = (spaces,) if isinstance(spaces, str) else spaces
        found.update({name: (config, *spaces) for name, config in of_spaces.items()})
    return found


#: Spaces as lists: their class, and its arguments.
SPACES = {
    "vector": vector(4),
    "table": vector(3, 5),
    "discrete": ["Discrete", 5],
    "several": ["MultiDiscrete", [3, 2]],
    "bits": ["MultiBinary", 6],
    "image84": image(84, 84, 4),
    "image84x1": image(84, 84, 1),
    "image42": image(42, 42, 3),
    "image64": image(64, 64, 3),
    "image96": image(96, 96, 3),
    "image10": image(10, 10, 3),
    "image240": image(240, 320, 3),
    "image480": image(480, 640, 3),
    "image20": image(20, 32, 3),
    "image50": image(50, 50, 3),
    "tuple": ["Tuple", [vector(3), ["Discrete", 2]]],
    "dict": ["Dict", {"b": ["Discrete", 4], "a": vector(3)}],
    "nested": ["Dict", {"z": ["Tuple", [vector(2), ["MultiDiscrete", [2, 3]]]], "a": vector(1)}],
    "camera": ["Dict", {"image": image(42, 42, 3), "speed": vector(3)}],
    "cameras": ["Tuple", [image(42, 42, 1), ["Discrete", 3], image(42, 42, 3), vector(2)]],
    "tables": ["Dict", {"grid": vector(3, 5), "speed": vector(3), "gear": ["Discrete", 3]}],
    "cameras_within": [
        "Dict",
        {"z": ["Dict", {"eye": image(42, 42, 1), "at": vector(2)}], "a": image(42, 42, 3)},
    ],
    "continuous": vector(2),
    "tuple_of_actions": ["Tuple", [["Discrete", 3], vector(2)]],
    "dict_of_actions": ["Dict", {"a": ["Discrete", 2], "b": vector(1)}],
}

SMALL = [[4, [4, 4], 2], [6, [4, 4], 2], [8, [11, 11], 1]]
LSTM = {"use_lstm": True, "lstm_cell_size": 6, "fcnet_hiddens": [8]}
BOTH = {"lstm_use_prev_action": True, "lstm_use_prev_reward": True}
PARTS = {"conv_filters": SMALL, "fcnet_hiddens": [8]}
ATTENTION = {
    "use_attention": True,
    "attention_num_transformer_units": 1,
    "attention_dim": 8,
    "attention_num_heads": 2,
    "attention_head_dim": 4,
    "attention_position_wise_mlp_dim": 6,
    "attention_memory_inference": 3,
    "attention_memory_training": 3,
    "fcnet_hiddens": [7],
}
STEPS = {"attention_use_n_prev_actions": 2, "attention_use_n_prev_rewards": 3}

#: What a `model` says, by observations and actions.
_MODELS = {
    ("vector", "discrete"): {
        "default": {},
        "share": {"vf_share_layers": True},
        "apart": {"vf_share_layers": False},
        "one-layer": {"fcnet_hiddens": [7]},
        "three-layers": {"fcnet_hiddens": [9, 8, 7], "fcnet_activation": "relu"},
        "no-layers": {"fcnet_hiddens": []},
        "linear": {"fcnet_hiddens": [8, 8], "fcnet_activation": "linear"},
        "swish": {"fcnet_hiddens": [8, 8], "fcnet_activation": "swish"},
        "elu": {"fcnet_hiddens": [8, 8], "fcnet_activation": "elu"},
        "no-final-linear": {"fcnet_hiddens": [8, 5], "no_final_linear": True},
        "post": {
            "fcnet_hiddens": [8],
            "post_fcnet_hiddens": [7, 6],
            "post_fcnet_activation": "relu",
        },
        "post-alone": {
            "fcnet_hiddens": [],
            "post_fcnet_hiddens": [6],
            "post_fcnet_activation": "relu",
        },
        "lstm": LSTM,
        "lstm-share": dict(LSTM, vf_share_layers=True),
        "lstm-default": {"use_lstm": True},
        "lstm-steps-before": dict(LSTM, **BOTH),
        "lstm-reward-before": dict(LSTM, lstm_use_prev_reward=True),
        "lstm-steps-before-until-1.1": dict(LSTM, lstm_use_prev_action_reward=True),
        "no-layers-share": {"fcnet_hiddens": [], "vf_share_layers": True},
        "no-final-linear-share": {
            "fcnet_hiddens": [8, 5],
            "no_final_linear": True,
            "vf_share_layers": True,
        },
        "no-final-linear-post": {
            "fcnet_hiddens": [8],
            "no_final_linear": True,
            "post_fcnet_hiddens": [7],
        },
        "lstm-post": dict(LSTM, post_fcnet_hiddens=[7, 6]),
        "lstm-no-layers": dict(LSTM, fcnet_hiddens=[]),
        "lstm-no-final-linear": dict(LSTM, no_final_linear=True),
        "attention": ATTENTION,
        "attention-default": {"use_attention": True},
        "attention-steps-before": dict(ATTENTION, **STEPS),
        "attention-no-layers": dict(ATTENTION, fcnet_hiddens=[]),
        "attention-and-lstm": dict(ATTENTION, **LSTM),
    },
    ("vector", "continuous"): {
        "no-layers-continuous": {"fcnet_hiddens": []},
        "free-log-std": {"fcnet_hiddens": [8], "free_log_std": True},
        "free-log-std-share": {"fcnet_hiddens": [8], "free_log_std": True, "vf_share_layers": True},
        "continuous": {"fcnet_hiddens": [8]},
        "lstm-continuous": LSTM,
        "lstm-steps-before-continuous": dict(LSTM, **BOTH),
        "no-layers-free-log-std": {"fcnet_hiddens": [], "free_log_std": True},
        "no-final-linear-one-layer": {"fcnet_hiddens": [8], "no_final_linear": True},
        "no-final-linear-free-log-std": {
            "fcnet_hiddens": [8, 5],
            "no_final_linear": True,
            "free_log_std": True,
        },
        "attention-two-units": dict(
            ATTENTION, attention_num_transformer_units=2, attention_init_gru_gate_bias=1.0
        ),
        "attention-steps-before-continuous": dict(ATTENTION, **STEPS),
    },
    ("vector", "several"): {
        "several": {"fcnet_hiddens": [8]},
        "lstm-steps-before-several": dict(LSTM, **BOTH),
        "lstm-three-layers": dict(LSTM, fcnet_hiddens=[9, 8, 7], fcnet_activation="relu"),
        "lstm-action-before": dict(LSTM, lstm_use_prev_action=True),
        "attention-share": dict(ATTENTION, vf_share_layers=True),
    },
    ("vector", "tuple_of_actions"): {
        "tuple-of-actions": {"fcnet_hiddens": [8]},
        "post-share": {"fcnet_hiddens": [8], "post_fcnet_hiddens": [7], "vf_share_layers": True},
        "lstm-tuple-of-actions": LSTM,
    },
    ("vector", "dict_of_actions"): {
        "dict-of-actions": {"fcnet_hiddens": [8]},
        "lstm-dict-of-actions": LSTM,
    },
    ("table", "discrete"): {"of-table": {"fcnet_hiddens": [8]}},
    ("discrete", "discrete"): {
        "of-discrete": {"fcnet_hiddens": [8]},
        "lstm-of-discrete": LSTM,
    },
    ("several", "discrete"): {"of-several": {"fcnet_hiddens": [8]}},
    ("bits", "discrete"): {"of-bits": {"fcnet_hiddens": [8]}},
    ("tuple", "discrete"): {"of-tuple": {"fcnet_hiddens": [8]}},
    ("dict", "discrete"): {
        "of-dict": {"fcnet_hiddens": [8]},
        "lstm-of-dict": LSTM,
        "attention-of-dict": ATTENTION,
    },
    ("nested", "discrete"): {
        "of-nested": {"fcnet_hiddens": [8]},
        "lstm-of-nested": LSTM,
    },
    ("image42", "discrete"): {
        "lstm-of-image": dict(LSTM, conv_filters=SMALL),
        "lstm-of-image-share": dict(LSTM, conv_filters=SMALL, vf_share_layers=True),
        "image42": {"dim": 42},
        "filters": {"conv_filters": SMALL},
        "filters-share": {"conv_filters": SMALL, "vf_share_layers": True},
        "filters-tanh": {"conv_filters": SMALL, "conv_activation": "tanh"},
        "filters-numbers": {"conv_filters": [[4, 4, 2], [6, 4, 2], [8, 11, 1]]},
        "filters-large-stride": {"conv_filters": [[4, [2, 2], 4], [8, [11, 11], 1]]},
        "filters-not-one-pixel": {"conv_filters": [[4, [4, 4], 2], [8, [4, 4], 2]]},
        "filters-post": {
            "conv_filters": SMALL,
            "post_fcnet_hiddens": [7, 6],
            "post_fcnet_activation": "relu",
        },
        "filters-no-final-linear": {"conv_filters": SMALL, "no_final_linear": True},
        "lstm-of-image-post": dict(LSTM, conv_filters=SMALL, post_fcnet_hiddens=[7]),
        "lstm-of-image-not-one-pixel": dict(LSTM, conv_filters=[[4, [4, 4], 2], [8, [4, 4], 2]]),
        "filters-swish": {"conv_filters": SMALL, "conv_activation": "swish"},
        "filters-linear": {"conv_filters": SMALL, "conv_activation": "linear"},
        "filters-uneven": {
            "conv_filters": [[4, [5, 3], [3, 2]], [6, [3, 5], [2, 3]], [8, [7, 7], 1]]
        },
        "filters-jumping": {"conv_filters": [[4, [2, 2], 5], [8, [9, 9], 1]]},
        "filters-post-no-final-linear": {
            "conv_filters": SMALL,
            "post_fcnet_hiddens": [7, 6],
            "no_final_linear": True,
        },
        "filters-no-final-linear-share": {
            "conv_filters": SMALL,
            "no_final_linear": True,
            "vf_share_layers": True,
        },
        "attention-of-image": dict(ATTENTION, conv_filters=SMALL),
    },
    ("camera", "discrete"): {
        "lstm-of-camera": dict(LSTM, conv_filters=SMALL),
        "camera": {"conv_filters": SMALL, "fcnet_hiddens": [8]},
        "camera-default": {},
        "camera-post": {"conv_filters": SMALL, "fcnet_hiddens": [8], "post_fcnet_hiddens": [7]},
        "lstm-of-camera-post": dict(LSTM, conv_filters=SMALL, post_fcnet_hiddens=[7]),
        "lstm-of-camera-steps-before": dict(LSTM, conv_filters=SMALL, **BOTH),
        "camera-share": dict(PARTS, vf_share_layers=True),
        "camera-apart": dict(PARTS, vf_share_layers=False),
        "camera-no-layers": dict(PARTS, fcnet_hiddens=[]),
        "camera-no-layers-post": dict(
            PARTS, fcnet_hiddens=[], post_fcnet_hiddens=[7, 6], post_fcnet_activation="tanh"
        ),
        "camera-no-final-linear": dict(PARTS, no_final_linear=True),
        "camera-two-layers": dict(PARTS, fcnet_hiddens=[8, 7]),
        "attention-of-camera": dict(ATTENTION, conv_filters=SMALL),
    },
    ("image84", "discrete"): {
        "image84": {},
        "image84-share": {"vf_share_layers": True},
        "lstm-of-image84": {"use_lstm": True, "lstm_cell_size": 6},
    },
    ("image84x1", "discrete"): {"image84x1": {}},
    ("image64", "discrete"): {
        "image64": {},
        "filters-of-five": {
            "conv_filters": [
                *[[4, [3, 3], 2], [5, [3, 3], 2], [6, [3, 3], 2], [7, [3, 3], 2]],
                [8, [4, 4], 1],
            ]
        },
    },
    ("image96", "discrete"): {"image96": {}},
    ("image10", "discrete"): {
        "image10": {},
        "filters-one": {"conv_filters": [[5, [10, 10], 1]]},
    },
    ("image240", "discrete"): {"image240": {}},
    ("image480", "discrete"): {"image480": {}},
    ("image50", "discrete"): {"image50": {}},
    ("image42", "continuous"): {
        "filters-continuous": {"conv_filters": SMALL},
        "filters-post-share": {
            "conv_filters": SMALL,
            "post_fcnet_hiddens": [7],
            "vf_share_layers": True,
        },
    },
    ("image20", "discrete"): {
        "filters-of-rectangle": {"conv_filters": [[4, [4, 4], 2], [6, [3, 3], 2], [8, [5, 8], 1]]}
    },
    ("cameras", "discrete"): {"cameras": {"conv_filters": SMALL, "fcnet_hiddens": [8]}},
    ("tables", "discrete"): {
        "of-tables": {"fcnet_hiddens": [8]},
        "lstm-of-tables": LSTM,
    },
    ("tables", "several"): {
        "of-tables-post": {"fcnet_hiddens": [8], "post_fcnet_hiddens": [7], "vf_share_layers": True}
    },
    ("image42", "several"): {
        "lstm-of-image-steps-before": dict(LSTM, conv_filters=SMALL, **BOTH),
        "filters-several": {"conv_filters": SMALL},
    },
    ("cameras", "continuous"): {"lstm-of-cameras": dict(LSTM, conv_filters=SMALL)},
    ("image42", "tuple_of_actions"): {"filters-tuple-of-actions": {"conv_filters": SMALL}},
    ("image42", "dict_of_actions"): {
        "filters-dict-of-actions": {"conv_filters": SMALL, "vf_share_layers": True}
    },
    ("camera", "continuous"): {
        "camera-continuous": PARTS,
        "camera-free-log-std": dict(PARTS, free_log_std=True),
    },
    ("camera", "several"): {"camera-several": PARTS},
    ("camera", "tuple_of_actions"): {"camera-tuple-of-actions": PARTS},
    ("cameras_within", "dict_of_actions"): {"cameras-within": PARTS},
}
MODELS = by_name(_MODELS)

#: Whose policies are built of which models; PPO's of all.
OTHERS = {
    algorithm: models.split()
    for algorithm, models in {
        "APPO": "default apart lstm filters continuous share lstm-share camera image84 "
        "lstm-of-image tuple-of-actions attention post of-dict",
        "A2C": "default apart one-layer filters lstm continuous no-layers share image84 "
        "lstm-of-image camera attention dict-of-actions filters-post",
        "A3C": "default filters lstm apart lstm-steps-before camera several post lstm-of-cameras "
        "free-log-std",
        "PG": "default filters continuous lstm apart tuple-of-actions camera",
        "IMPALA": "default apart filters lstm several lstm-steps-before camera image84 "
        "lstm-of-image attention tuple-of-actions dict-of-actions post",
        "MARWIL": "default filters continuous apart lstm several of-dict post",
        "BC": "default apart filters continuous lstm several camera",
    }.items()
}

#: Configs by observations.
_QS = {
    "vector": {
        "default": {},
        "plain": {"dueling": False, "double_q": False},
        "hiddens": {"hiddens": [9, 8], "model": {"fcnet_hiddens": [7]}},
        "no-hiddens": {"hiddens": [], "dueling": False, "model": {"fcnet_hiddens": [7]}},
        "no-layers": {"hiddens": [9], "model": {"fcnet_hiddens": []}},
        "atoms": {
            "num_atoms": 5,
            "hiddens": [8],
            "model": {"fcnet_hiddens": [7]},
            "dueling": False,
        },
        "atoms-dueling": {"num_atoms": 5, "hiddens": [8], "model": {"fcnet_hiddens": [7]}},
        "noisy": {"noisy": True, "hiddens": [8], "model": {"fcnet_hiddens": [7]}},
        "norms": {
            "hiddens": [8],
            "model": {"fcnet_hiddens": [7]},
            "exploration_config": {"type": "ParameterNoise"},
        },
        "lstm": {"hiddens": [8], "model": LSTM},
        "post": {"hiddens": [8], "model": {"fcnet_hiddens": [7], "post_fcnet_hiddens": [6]}},
        "no-final-linear": {
            "hiddens": [8],
            "model": {"fcnet_hiddens": [7, 6], "no_final_linear": True},
        },
        "no-hiddens-no-layers": {"hiddens": [], "dueling": False, "model": {"fcnet_hiddens": []}},
        "no-hiddens-dueling": {"hiddens": [], "model": {"fcnet_hiddens": [7]}},
        "atoms-no-hiddens": {
            "num_atoms": 5,
            "hiddens": [],
            "dueling": False,
            "model": {"fcnet_hiddens": [7]},
        },
        "noisy-atoms": {
            "noisy": True,
            "num_atoms": 5,
            "hiddens": [8],
            "model": {"fcnet_hiddens": [7]},
        },
        "noisy-no-hiddens": {
            "noisy": True,
            "hiddens": [],
            "dueling": False,
            "model": {"fcnet_hiddens": [7]},
        },
    },
    "dict": {"of-dict": {"hiddens": [8], "model": {"fcnet_hiddens": [7]}}},
    "image84": {"image84": {}},
    "image42": {
        "filters": {"hiddens": [8], "model": {"conv_filters": SMALL}},
        "filters-no-hiddens": {"hiddens": [], "dueling": False, "model": {"conv_filters": SMALL}},
        "filters-post": {
            "hiddens": [8],
            "model": {"conv_filters": SMALL, "post_fcnet_hiddens": [7]},
        },
        "filters-no-layers": {
            "hiddens": [8],
            "model": {"conv_filters": SMALL, "fcnet_hiddens": []},
        },
        "filters-not-one-pixel": {
            "hiddens": [8],
            "model": {"conv_filters": [[4, [4, 4], 2], [8, [4, 4], 2]]},
        },
    },
    "camera": {"camera": {"hiddens": [8], "model": {"conv_filters": SMALL, "fcnet_hiddens": [7]}}},
    "tables": {"of-tables": {"hiddens": [8], "model": {"fcnet_hiddens": [7]}}},
    "discrete": {"of-discrete": {"hiddens": [8], "model": {"fcnet_hiddens": [7]}}},
    "cameras": {
        "cameras": {"hiddens": [8], "model": {"conv_filters": SMALL, "fcnet_hiddens": [7]}}
    },
}
QS = by_name(_QS)

SMALL_SAC = {"fcnet_hiddens": [8, 7], "fcnet_activation": "relu"}
#: Configs by observations and actions.
_SACS = {
    ("vector", "continuous"): {
        "default": {},
        "apart": {"Q_model": {"fcnet_hiddens": [9]}, "policy_model": {"fcnet_hiddens": [8, 7]}},
        "no-twin": dict(alike(SMALL_SAC), twin_q=False),
        "tanh": alike(dict(SMALL_SAC, fcnet_activation="tanh")),
        "post": {
            "Q_model": dict(SMALL_SAC, post_fcnet_hiddens=[6]),
            "policy_model": dict(SMALL_SAC, post_fcnet_hiddens=[5, 4]),
        },
        "no-layers": alike({"fcnet_hiddens": []}),
        "model-alone": {"model": {"fcnet_hiddens": [9]}},
    },
    ("vector", "discrete"): {
        "discrete": {},
        "apart-discrete": {
            "Q_model": {"fcnet_hiddens": [9]},
            "policy_model": {"fcnet_hiddens": [8, 7]},
        },
    },
    ("dict", "continuous"): {"of-dict": alike(SMALL_SAC)},
    ("image42", "discrete"): {"filters-discrete": alike({"conv_filters": SMALL})},
    ("image42", "continuous"): {"filters": alike({"conv_filters": SMALL})},
    ("dict", "discrete"): {
        "of-dict-discrete": {
            "Q_model": SMALL_SAC,
            "policy_model": dict(SMALL_SAC, fcnet_hiddens=[6]),
        }
    },
    ("tuple", "continuous"): {"of-tuple": alike(SMALL_SAC)},
    ("tables", "continuous"): {"of-tables": alike(SMALL_SAC)},
    ("discrete", "continuous"): {"of-discrete": alike(SMALL_SAC)},
    ("camera", "continuous"): {"of-camera": alike(dict(SMALL_SAC, conv_filters=SMALL))},
    ("camera", "discrete"): {"of-camera-discrete": alike(dict(SMALL_SAC, conv_filters=SMALL))},
}
SACS = by_name(_SACS)

STATE = {"actor_hiddens": [9], "critic_hiddens": [8], "use_state_preprocessor": True}
#: Configs by observations.
_DDPGS = {
    "vector": {
        "default": {},
        "hiddens": {"actor_hiddens": [9, 8], "critic_hiddens": [7, 6, 5]},
        "no-hiddens": {"actor_hiddens": [], "critic_hiddens": []},
        "activations": {
            "actor_hiddens": [9],
            "critic_hiddens": [8],
            "actor_hidden_activation": "tanh",
            "critic_hidden_activation": "tanh",
        },
        "twin": {"actor_hiddens": [9], "critic_hiddens": [8], "twin_q": True},
        "state": {
            "actor_hiddens": [9],
            "critic_hiddens": [8],
            "use_state_preprocessor": True,
            "model": {"fcnet_hiddens": [7, 6]},
        },
        "norms": {
            "actor_hiddens": [9],
            "critic_hiddens": [8],
            "exploration_config": {"type": "ParameterNoise"},
        },
        "state-default": dict(STATE),
        "state-one-layer": dict(STATE, model={"fcnet_hiddens": [7]}, twin_q=True),
        "state-no-layers": dict(STATE, model={"fcnet_hiddens": []}),
        "state-post": dict(STATE, model={"fcnet_hiddens": [7], "post_fcnet_hiddens": [6]}),
        "state-relu": dict(STATE, model={"fcnet_hiddens": [7, 6], "fcnet_activation": "relu"}),
    },
    "dict": {
        "of-dict": {"actor_hiddens": [9], "critic_hiddens": [8]},
        "state-of-dict": dict(STATE, model={"fcnet_hiddens": [7, 6]}),
    },
    "table": {"of-table": {"actor_hiddens": [9], "critic_hiddens": [8]}},
    "image10": {"of-image": {"actor_hiddens": [9], "critic_hiddens": [8]}},
    "image42": {
        "state-of-image": {
            "actor_hiddens": [9],
            "critic_hiddens": [8],
            "use_state_preprocessor": True,
            "model": {"conv_filters": SMALL},
        },
        "state-of-image-post": dict(
            STATE, model={"conv_filters": SMALL, "post_fcnet_hiddens": [7, 6]}
        ),
        "state-of-image-tanh": dict(
            STATE, model={"conv_filters": SMALL, "conv_activation": "tanh"}
        ),
    },
    "discrete": {"state-of-discrete": dict(STATE, model={"fcnet_hiddens": [7, 6]})},
    "image84": {"state-of-image84": dict(STATE)},
    "camera": {
        "state-of-camera": dict(STATE, model=PARTS),
        "state-of-camera-post": dict(STATE, model=dict(PARTS, post_fcnet_hiddens=[6])),
        "of-camera": {"actor_hiddens": [9], "critic_hiddens": [8]},
    },
    "cameras": {"state-of-cameras": dict(STATE, model=dict(PARTS, fcnet_hiddens=[]))},
    "tables": {"state-of-tables": dict(STATE, model={"fcnet_hiddens": [7]})},
}
DDPGS = by_name(_DDPGS)

#: The models of ES and ARS.
EVOLVED = (
    "default one-layer three-layers no-layers several free-log-std continuous swish post "
    "no-final-linear no-final-linear-one-layer of-dict of-discrete tuple-of-actions "
    "image84 image42 filters filters-continuous filters-tanh filters-post filters-no-final-linear "
    "filters-one filters-not-one-pixel camera camera-continuous camera-post of-tables"
)

#: Of networks that an algorithm's own module makes, not `networks.fresh`.
SEQUENCES = {
    "lstm": {"hiddens": [8], "model": LSTM},
    "lstm-steps-before": {"hiddens": [8], "model": dict(LSTM, **BOTH)},
    "no-dueling": {"hiddens": [8], "dueling": False, "model": LSTM},
    "no-hiddens": {"hiddens": [], "dueling": False, "model": LSTM},
    "attention": {"hiddens": [8], "model": ATTENTION},
    "attention-steps-before": {"hiddens": [8], "model": dict(ATTENTION, **STEPS)},
    "attention-no-hiddens": {"hiddens": [], "dueling": False, "model": ATTENTION},
}


#: What TensorFlow had another way, or trained where torch did not.
ON_TENSORFLOW = [
    *("PPO default", "PPO no-layers", "PPO no-final-linear", "PPO post", "PPO free-log-std"),
    *("PPO of-table", "PPO of-bits", "PPO of-tables", "PPO lstm", "PPO lstm-no-layers"),
    *("PPO lstm-steps-before", "PPO lstm-of-image", "PPO lstm-of-image-post"),
    *("PPO lstm-of-camera-post", "PPO filters", "PPO filters-post", "PPO filters-post-share"),
    *("PPO filters-post-no-final-linear", "PPO filters-no-final-linear", "PPO camera"),
    *("PPO camera-post", "PPO camera-apart", "PPO attention", "PPO attention-steps-before"),
    *("PPO attention-of-image", "DQN default", "DQN filters-post"),
    *("SAC default", "SAC of-dict", "SAC of-tables"),
]


def cases():
    """All cases by name."""
    found = {}
    for model, (told, seen, acts) in MODELS.items():
        found["PPO " + model] = ("PPO", seen, acts, {"model": told})
    for algorithm, models in OTHERS.items():
        for model in models:
            told, seen, acts = MODELS[model]
            found[algorithm + " " + model] = (algorithm, seen, acts, {"model": told})
    for name, (config, seen) in QS.items():
        found["DQN " + name] = ("DQN", seen, "discrete", config)
    found["SimpleQ default"] = ("SimpleQ", "vector", "discrete", {})
    found["SimpleQ filters"] = ("SimpleQ", "image42", "discrete", QS["filters"][0])
    for name, (config, seen, acts) in SACS.items():
        found["SAC " + name] = ("SAC", seen, acts, config)
        if acts == "continuous" and not name.startswith("of-"):
            found["CQL " + name] = ("CQL", seen, acts, config)
    for name, (config, seen) in DDPGS.items():
        found["DDPG " + name] = ("DDPG", seen, "continuous", config)
    for name in ("default", "hiddens", "of-dict"):
        found["TD3 " + name] = ("TD3", DDPGS[name][1], "continuous", DDPGS[name][0])
    for name, config in SEQUENCES.items():
        found["R2D2 " + name] = ("R2D2", "vector", "discrete", config)
    for name in EVOLVED.split():
        told, seen, acts = MODELS[name]
        for algorithm in ("ES", "ARS"):
            found[algorithm + " " + name] = (algorithm, seen, acts, {"model": told})
    return found


def space(told, spaces):
    """A space of gym or gymnasium.

    Args:
        told: The name of one of `SPACES`, or one as they are written there.
        spaces: gym's or gymnasium's module of spaces.
    """
    kind, *told = SPACES[told] if isinstance(told, str) else told
    if kind == "Box":
        low, high, shape, dtype = told
        return spaces.Box(low, high, tuple(shape), dtype)
    if kind == "Tuple":
        return spaces.Tuple([space(part, spaces) for part in told[0]])
    if kind == "Dict":
        return spaces.Dict({name: space(part, spaces) for name, part in told[0].items()})
    return getattr(spaces, kind)(*told)
