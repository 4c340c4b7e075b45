"""The configs whose new networks were recorded; old Rays (Python 3.7) and tests read them.

A case is (algorithm, observations, actions, config), by name.
"""


def image(*shape):
    return ["Box", 0, 255, list(shape), "uint8"]


def vector(*shape):
    return ["Box", -1.0, 1.0, list(shape), "float32"]


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

#: What a `model` says, and for which observations and actions.
MODELS = {
    "default": ({}, "vector", "discrete"),
    "share": ({"vf_share_layers": True}, "vector", "discrete"),
    "apart": ({"vf_share_layers": False}, "vector", "discrete"),
    "one-layer": ({"fcnet_hiddens": [7]}, "vector", "discrete"),
    "three-layers": (
        {"fcnet_hiddens": [9, 8, 7], "fcnet_activation": "relu"},
        "vector",
        "discrete",
    ),
    "no-layers": ({"fcnet_hiddens": []}, "vector", "discrete"),
    "no-layers-continuous": ({"fcnet_hiddens": []}, "vector", "continuous"),
    "linear": ({"fcnet_hiddens": [8, 8], "fcnet_activation": "linear"}, "vector", "discrete"),
    "swish": ({"fcnet_hiddens": [8, 8], "fcnet_activation": "swish"}, "vector", "discrete"),
    "elu": ({"fcnet_hiddens": [8, 8], "fcnet_activation": "elu"}, "vector", "discrete"),
    "no-final-linear": ({"fcnet_hiddens": [8, 5], "no_final_linear": True}, "vector", "discrete"),
    "post": (
        {"fcnet_hiddens": [8], "post_fcnet_hiddens": [7, 6], "post_fcnet_activation": "relu"},
        "vector",
        "discrete",
    ),
    "post-alone": (
        {"fcnet_hiddens": [], "post_fcnet_hiddens": [6], "post_fcnet_activation": "relu"},
        "vector",
        "discrete",
    ),
    "free-log-std": ({"fcnet_hiddens": [8], "free_log_std": True}, "vector", "continuous"),
    "free-log-std-share": (
        {"fcnet_hiddens": [8], "free_log_std": True, "vf_share_layers": True},
        "vector",
        "continuous",
    ),
    "continuous": ({"fcnet_hiddens": [8]}, "vector", "continuous"),
    "several": ({"fcnet_hiddens": [8]}, "vector", "several"),
    "tuple-of-actions": ({"fcnet_hiddens": [8]}, "vector", "tuple_of_actions"),
    "dict-of-actions": ({"fcnet_hiddens": [8]}, "vector", "dict_of_actions"),
    "of-table": ({"fcnet_hiddens": [8]}, "table", "discrete"),
    "of-discrete": ({"fcnet_hiddens": [8]}, "discrete", "discrete"),
    "of-several": ({"fcnet_hiddens": [8]}, "several", "discrete"),
    "of-bits": ({"fcnet_hiddens": [8]}, "bits", "discrete"),
    "of-tuple": ({"fcnet_hiddens": [8]}, "tuple", "discrete"),
    "of-dict": ({"fcnet_hiddens": [8]}, "dict", "discrete"),
    "of-nested": ({"fcnet_hiddens": [8]}, "nested", "discrete"),
    "lstm": (LSTM, "vector", "discrete"),
    "lstm-share": (dict(LSTM, vf_share_layers=True), "vector", "discrete"),
    "lstm-default": ({"use_lstm": True}, "vector", "discrete"),
    "lstm-continuous": (LSTM, "vector", "continuous"),
    "lstm-steps-before": (dict(LSTM, **BOTH), "vector", "discrete"),
    "lstm-steps-before-continuous": (dict(LSTM, **BOTH), "vector", "continuous"),
    "lstm-steps-before-several": (dict(LSTM, **BOTH), "vector", "several"),
    "lstm-reward-before": (dict(LSTM, lstm_use_prev_reward=True), "vector", "discrete"),
    "lstm-steps-before-until-1.1": (
        dict(LSTM, lstm_use_prev_action_reward=True),
        "vector",
        "discrete",
    ),
    "lstm-of-dict": (LSTM, "dict", "discrete"),
    "lstm-of-image": (dict(LSTM, conv_filters=SMALL), "image42", "discrete"),
    "lstm-of-image-share": (
        dict(LSTM, conv_filters=SMALL, vf_share_layers=True),
        "image42",
        "discrete",
    ),
    "lstm-of-camera": (dict(LSTM, conv_filters=SMALL), "camera", "discrete"),
    "image84": ({}, "image84", "discrete"),
    "image84-share": ({"vf_share_layers": True}, "image84", "discrete"),
    "image84x1": ({}, "image84x1", "discrete"),
    "image42": ({"dim": 42}, "image42", "discrete"),
    "image64": ({}, "image64", "discrete"),
    "image96": ({}, "image96", "discrete"),
    "image10": ({}, "image10", "discrete"),
    "image240": ({}, "image240", "discrete"),
    "image480": ({}, "image480", "discrete"),
    "image50": ({}, "image50", "discrete"),
    "filters": ({"conv_filters": SMALL}, "image42", "discrete"),
    "filters-share": ({"conv_filters": SMALL, "vf_share_layers": True}, "image42", "discrete"),
    "filters-tanh": ({"conv_filters": SMALL, "conv_activation": "tanh"}, "image42", "discrete"),
    "filters-continuous": ({"conv_filters": SMALL}, "image42", "continuous"),
    "filters-one": ({"conv_filters": [[5, [10, 10], 1]]}, "image10", "discrete"),
    "filters-numbers": (
        {"conv_filters": [[4, 4, 2], [6, 4, 2], [8, 11, 1]]},
        "image42",
        "discrete",
    ),
    "filters-of-rectangle": (
        {"conv_filters": [[4, [4, 4], 2], [6, [3, 3], 2], [8, [5, 8], 1]]},
        "image20",
        "discrete",
    ),
    "filters-large-stride": (
        {"conv_filters": [[4, [2, 2], 4], [8, [11, 11], 1]]},
        "image42",
        "discrete",
    ),
    "filters-not-one-pixel": (
        {"conv_filters": [[4, [4, 4], 2], [8, [4, 4], 2]]},
        "image42",
        "discrete",
    ),
    "filters-post": (
        {"conv_filters": SMALL, "post_fcnet_hiddens": [7, 6], "post_fcnet_activation": "relu"},
        "image42",
        "discrete",
    ),
    "filters-no-final-linear": (
        {"conv_filters": SMALL, "no_final_linear": True},
        "image42",
        "discrete",
    ),
    "camera": ({"conv_filters": SMALL, "fcnet_hiddens": [8]}, "camera", "discrete"),
    "camera-default": ({}, "camera", "discrete"),
    "camera-post": (
        {"conv_filters": SMALL, "fcnet_hiddens": [8], "post_fcnet_hiddens": [7]},
        "camera",
        "discrete",
    ),
    "cameras": ({"conv_filters": SMALL, "fcnet_hiddens": [8]}, "cameras", "discrete"),
    "no-layers-share": ({"fcnet_hiddens": [], "vf_share_layers": True}, "vector", "discrete"),
    "no-layers-free-log-std": (
        {"fcnet_hiddens": [], "free_log_std": True},
        "vector",
        "continuous",
    ),
    "no-final-linear-share": (
        {"fcnet_hiddens": [8, 5], "no_final_linear": True, "vf_share_layers": True},
        "vector",
        "discrete",
    ),
    "no-final-linear-one-layer": (
        {"fcnet_hiddens": [8], "no_final_linear": True},
        "vector",
        "continuous",
    ),
    "no-final-linear-free-log-std": (
        {"fcnet_hiddens": [8, 5], "no_final_linear": True, "free_log_std": True},
        "vector",
        "continuous",
    ),
    "no-final-linear-post": (
        {"fcnet_hiddens": [8], "no_final_linear": True, "post_fcnet_hiddens": [7]},
        "vector",
        "discrete",
    ),
    "post-share": (
        {"fcnet_hiddens": [8], "post_fcnet_hiddens": [7], "vf_share_layers": True},
        "vector",
        "tuple_of_actions",
    ),
    "of-tables": ({"fcnet_hiddens": [8]}, "tables", "discrete"),
    "of-tables-post": (
        {"fcnet_hiddens": [8], "post_fcnet_hiddens": [7], "vf_share_layers": True},
        "tables",
        "several",
    ),
    "lstm-post": (dict(LSTM, post_fcnet_hiddens=[7, 6]), "vector", "discrete"),
    "lstm-three-layers": (
        dict(LSTM, fcnet_hiddens=[9, 8, 7], fcnet_activation="relu"),
        "vector",
        "several",
    ),
    "lstm-no-layers": (dict(LSTM, fcnet_hiddens=[]), "vector", "discrete"),
    "lstm-no-final-linear": (dict(LSTM, no_final_linear=True), "vector", "discrete"),
    "lstm-action-before": (dict(LSTM, lstm_use_prev_action=True), "vector", "several"),
    "lstm-tuple-of-actions": (LSTM, "vector", "tuple_of_actions"),
    "lstm-dict-of-actions": (LSTM, "vector", "dict_of_actions"),
    "lstm-of-tables": (LSTM, "tables", "discrete"),
    "lstm-of-discrete": (LSTM, "discrete", "discrete"),
    "lstm-of-nested": (LSTM, "nested", "discrete"),
    "lstm-of-image84": ({"use_lstm": True, "lstm_cell_size": 6}, "image84", "discrete"),
    "lstm-of-image-post": (
        dict(LSTM, conv_filters=SMALL, post_fcnet_hiddens=[7]),
        "image42",
        "discrete",
    ),
    "lstm-of-image-steps-before": (
        dict(LSTM, conv_filters=SMALL, **BOTH),
        "image42",
        "several",
    ),
    "lstm-of-image-not-one-pixel": (
        dict(LSTM, conv_filters=[[4, [4, 4], 2], [8, [4, 4], 2]]),
        "image42",
        "discrete",
    ),
    "lstm-of-camera-post": (
        dict(LSTM, conv_filters=SMALL, post_fcnet_hiddens=[7]),
        "camera",
        "discrete",
    ),
    "lstm-of-cameras": (dict(LSTM, conv_filters=SMALL), "cameras", "continuous"),
    "lstm-of-camera-steps-before": (
        dict(LSTM, conv_filters=SMALL, **BOTH),
        "camera",
        "discrete",
    ),
    "filters-swish": ({"conv_filters": SMALL, "conv_activation": "swish"}, "image42", "discrete"),
    "filters-linear": ({"conv_filters": SMALL, "conv_activation": "linear"}, "image42", "discrete"),
    "filters-several": ({"conv_filters": SMALL}, "image42", "several"),
    "filters-tuple-of-actions": ({"conv_filters": SMALL}, "image42", "tuple_of_actions"),
    "filters-dict-of-actions": (
        {"conv_filters": SMALL, "vf_share_layers": True},
        "image42",
        "dict_of_actions",
    ),
    "filters-uneven": (
        {"conv_filters": [[4, [5, 3], [3, 2]], [6, [3, 5], [2, 3]], [8, [7, 7], 1]]},
        "image42",
        "discrete",
    ),
    "filters-of-five": (
        {
            "conv_filters": [
                *([[4, [3, 3], 2], [5, [3, 3], 2], [6, [3, 3], 2], [7, [3, 3], 2]]),
                [8, [4, 4], 1],
            ]
        },
        "image64",
        "discrete",
    ),
    "filters-jumping": (
        {"conv_filters": [[4, [2, 2], 5], [8, [9, 9], 1]]},
        "image42",
        "discrete",
    ),
    "filters-post-share": (
        {"conv_filters": SMALL, "post_fcnet_hiddens": [7], "vf_share_layers": True},
        "image42",
        "continuous",
    ),
    "filters-post-no-final-linear": (
        {"conv_filters": SMALL, "post_fcnet_hiddens": [7, 6], "no_final_linear": True},
        "image42",
        "discrete",
    ),
    "filters-no-final-linear-share": (
        {"conv_filters": SMALL, "no_final_linear": True, "vf_share_layers": True},
        "image42",
        "discrete",
    ),
    "camera-share": (dict(PARTS, vf_share_layers=True), "camera", "discrete"),
    "camera-apart": (dict(PARTS, vf_share_layers=False), "camera", "discrete"),
    "camera-continuous": (PARTS, "camera", "continuous"),
    "camera-several": (PARTS, "camera", "several"),
    "camera-tuple-of-actions": (PARTS, "camera", "tuple_of_actions"),
    "camera-no-layers": (dict(PARTS, fcnet_hiddens=[]), "camera", "discrete"),
    "camera-no-layers-post": (
        dict(PARTS, fcnet_hiddens=[], post_fcnet_hiddens=[7, 6], post_fcnet_activation="tanh"),
        "camera",
        "discrete",
    ),
    "camera-free-log-std": (dict(PARTS, free_log_std=True), "camera", "continuous"),
    "camera-no-final-linear": (dict(PARTS, no_final_linear=True), "camera", "discrete"),
    "camera-two-layers": (dict(PARTS, fcnet_hiddens=[8, 7]), "camera", "discrete"),
    "cameras-within": (PARTS, "cameras_within", "dict_of_actions"),
    "attention": (ATTENTION, "vector", "discrete"),
    "attention-default": ({"use_attention": True}, "vector", "discrete"),
    "attention-share": (dict(ATTENTION, vf_share_layers=True), "vector", "several"),
    "attention-two-units": (
        dict(ATTENTION, attention_num_transformer_units=2, attention_init_gru_gate_bias=1.0),
        "vector",
        "continuous",
    ),
    "attention-steps-before": (dict(ATTENTION, **STEPS), "vector", "discrete"),
    "attention-steps-before-continuous": (dict(ATTENTION, **STEPS), "vector", "continuous"),
    "attention-no-layers": (dict(ATTENTION, fcnet_hiddens=[]), "vector", "discrete"),
    "attention-of-dict": (ATTENTION, "dict", "discrete"),
    "attention-of-image": (dict(ATTENTION, conv_filters=SMALL), "image42", "discrete"),
    "attention-of-camera": (dict(ATTENTION, conv_filters=SMALL), "camera", "discrete"),
    "attention-and-lstm": (dict(ATTENTION, **LSTM), "vector", "discrete"),
}

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

QS = {
    "default": ({}, "vector"),
    "plain": ({"dueling": False, "double_q": False}, "vector"),
    "hiddens": ({"hiddens": [9, 8], "model": {"fcnet_hiddens": [7]}}, "vector"),
    "no-hiddens": ({"hiddens": [], "dueling": False, "model": {"fcnet_hiddens": [7]}}, "vector"),
    "no-layers": ({"hiddens": [9], "model": {"fcnet_hiddens": []}}, "vector"),
    "atoms": (
        {"num_atoms": 5, "hiddens": [8], "model": {"fcnet_hiddens": [7]}, "dueling": False},
        "vector",
    ),
    "atoms-dueling": ({"num_atoms": 5, "hiddens": [8], "model": {"fcnet_hiddens": [7]}}, "vector"),
    "noisy": ({"noisy": True, "hiddens": [8], "model": {"fcnet_hiddens": [7]}}, "vector"),
    "of-dict": ({"hiddens": [8], "model": {"fcnet_hiddens": [7]}}, "dict"),
    "image84": ({}, "image84"),
    "filters": ({"hiddens": [8], "model": {"conv_filters": SMALL}}, "image42"),
    "filters-no-hiddens": (
        {"hiddens": [], "dueling": False, "model": {"conv_filters": SMALL}},
        "image42",
    ),
    "camera": (
        {"hiddens": [8], "model": {"conv_filters": SMALL, "fcnet_hiddens": [7]}},
        "camera",
    ),
    "norms": (
        {
            "hiddens": [8],
            "model": {"fcnet_hiddens": [7]},
            "exploration_config": {"type": "ParameterNoise"},
        },
        "vector",
    ),
}

QS.update(
    {
        "lstm": ({"hiddens": [8], "model": LSTM}, "vector"),
        "post": (
            {"hiddens": [8], "model": {"fcnet_hiddens": [7], "post_fcnet_hiddens": [6]}},
            "vector",
        ),
        "no-final-linear": (
            {"hiddens": [8], "model": {"fcnet_hiddens": [7, 6], "no_final_linear": True}},
            "vector",
        ),
        "no-hiddens-no-layers": (
            {"hiddens": [], "dueling": False, "model": {"fcnet_hiddens": []}},
            "vector",
        ),
        "no-hiddens-dueling": ({"hiddens": [], "model": {"fcnet_hiddens": [7]}}, "vector"),
        "atoms-no-hiddens": (
            {"num_atoms": 5, "hiddens": [], "dueling": False, "model": {"fcnet_hiddens": [7]}},
            "vector",
        ),
        "noisy-atoms": (
            {"noisy": True, "num_atoms": 5, "hiddens": [8], "model": {"fcnet_hiddens": [7]}},
            "vector",
        ),
        "noisy-no-hiddens": (
            {"noisy": True, "hiddens": [], "dueling": False, "model": {"fcnet_hiddens": [7]}},
            "vector",
        ),
        "of-tables": ({"hiddens": [8], "model": {"fcnet_hiddens": [7]}}, "tables"),
        "of-discrete": ({"hiddens": [8], "model": {"fcnet_hiddens": [7]}}, "discrete"),
        "filters-post": (
            {"hiddens": [8], "model": {"conv_filters": SMALL, "post_fcnet_hiddens": [7]}},
            "image42",
        ),
        "filters-no-layers": (
            {"hiddens": [8], "model": {"conv_filters": SMALL, "fcnet_hiddens": []}},
            "image42",
        ),
        "filters-not-one-pixel": (
            {"hiddens": [8], "model": {"conv_filters": [[4, [4, 4], 2], [8, [4, 4], 2]]}},
            "image42",
        ),
        "cameras": (
            {"hiddens": [8], "model": {"conv_filters": SMALL, "fcnet_hiddens": [7]}},
            "cameras",
        ),
    }
)

SMALL_SAC = {"fcnet_hiddens": [8, 7], "fcnet_activation": "relu"}
SACS = {
    "default": ({}, "vector", "continuous"),
    "discrete": ({}, "vector", "discrete"),
    "apart": (
        {"Q_model": {"fcnet_hiddens": [9]}, "policy_model": {"fcnet_hiddens": [8, 7]}},
        "vector",
        "continuous",
    ),
    "apart-discrete": (
        {"Q_model": {"fcnet_hiddens": [9]}, "policy_model": {"fcnet_hiddens": [8, 7]}},
        "vector",
        "discrete",
    ),
    "no-twin": (
        {"twin_q": False, "Q_model": SMALL_SAC, "policy_model": SMALL_SAC},
        "vector",
        "continuous",
    ),
    "tanh": (
        {
            "Q_model": dict(SMALL_SAC, fcnet_activation="tanh"),
            "policy_model": dict(SMALL_SAC, fcnet_activation="tanh"),
        },
        "vector",
        "continuous",
    ),
    "of-dict": ({"Q_model": SMALL_SAC, "policy_model": SMALL_SAC}, "dict", "continuous"),
    "filters-discrete": (
        {"Q_model": {"conv_filters": SMALL}, "policy_model": {"conv_filters": SMALL}},
        "image42",
        "discrete",
    ),
    "filters": (
        {"Q_model": {"conv_filters": SMALL}, "policy_model": {"conv_filters": SMALL}},
        "image42",
        "continuous",
    ),
    "of-dict-discrete": (
        {"Q_model": SMALL_SAC, "policy_model": dict(SMALL_SAC, fcnet_hiddens=[6])},
        "dict",
        "discrete",
    ),
    "of-tuple": ({"Q_model": SMALL_SAC, "policy_model": SMALL_SAC}, "tuple", "continuous"),
    "of-tables": ({"Q_model": SMALL_SAC, "policy_model": SMALL_SAC}, "tables", "continuous"),
    "of-discrete": ({"Q_model": SMALL_SAC, "policy_model": SMALL_SAC}, "discrete", "continuous"),
    "of-camera": (
        {
            "Q_model": dict(SMALL_SAC, conv_filters=SMALL),
            "policy_model": dict(SMALL_SAC, conv_filters=SMALL),
        },
        "camera",
        "continuous",
    ),
    "of-camera-discrete": (
        {
            "Q_model": dict(SMALL_SAC, conv_filters=SMALL),
            "policy_model": dict(SMALL_SAC, conv_filters=SMALL),
        },
        "camera",
        "discrete",
    ),
    "post": (
        {
            "Q_model": dict(SMALL_SAC, post_fcnet_hiddens=[6]),
            "policy_model": dict(SMALL_SAC, post_fcnet_hiddens=[5, 4]),
        },
        "vector",
        "continuous",
    ),
    "no-layers": (
        {"Q_model": {"fcnet_hiddens": []}, "policy_model": {"fcnet_hiddens": []}},
        "vector",
        "continuous",
    ),
    "model-alone": ({"model": {"fcnet_hiddens": [9]}}, "vector", "continuous"),
}

DDPGS = {
    "default": ({}, "vector"),
    "hiddens": ({"actor_hiddens": [9, 8], "critic_hiddens": [7, 6, 5]}, "vector"),
    "no-hiddens": ({"actor_hiddens": [], "critic_hiddens": []}, "vector"),
    "activations": (
        {
            "actor_hiddens": [9],
            "critic_hiddens": [8],
            "actor_hidden_activation": "tanh",
            "critic_hidden_activation": "tanh",
        },
        "vector",
    ),
    "twin": ({"actor_hiddens": [9], "critic_hiddens": [8], "twin_q": True}, "vector"),
    "state": (
        {
            "actor_hiddens": [9],
            "critic_hiddens": [8],
            "use_state_preprocessor": True,
            "model": {"fcnet_hiddens": [7, 6]},
        },
        "vector",
    ),
    "of-dict": ({"actor_hiddens": [9], "critic_hiddens": [8]}, "dict"),
    "of-table": ({"actor_hiddens": [9], "critic_hiddens": [8]}, "table"),
    "of-image": ({"actor_hiddens": [9], "critic_hiddens": [8]}, "image10"),
    "state-of-image": (
        {
            "actor_hiddens": [9],
            "critic_hiddens": [8],
            "use_state_preprocessor": True,
            "model": {"conv_filters": SMALL},
        },
        "image42",
    ),
    "norms": (
        {
            "actor_hiddens": [9],
            "critic_hiddens": [8],
            "exploration_config": {"type": "ParameterNoise"},
        },
        "vector",
    ),
}

STATE = {"actor_hiddens": [9], "critic_hiddens": [8], "use_state_preprocessor": True}
DDPGS.update(
    {
        "state-default": (dict(STATE), "vector"),
        "state-one-layer": (dict(STATE, model={"fcnet_hiddens": [7]}, twin_q=True), "vector"),
        "state-no-layers": (dict(STATE, model={"fcnet_hiddens": []}), "vector"),
        "state-post": (
            dict(STATE, model={"fcnet_hiddens": [7], "post_fcnet_hiddens": [6]}),
            "vector",
        ),
        "state-relu": (
            dict(STATE, model={"fcnet_hiddens": [7, 6], "fcnet_activation": "relu"}),
            "vector",
        ),
        "state-of-dict": (dict(STATE, model={"fcnet_hiddens": [7, 6]}), "dict"),
        "state-of-discrete": (dict(STATE, model={"fcnet_hiddens": [7, 6]}), "discrete"),
        "state-of-image84": (dict(STATE), "image84"),
        "state-of-image-post": (
            dict(STATE, model={"conv_filters": SMALL, "post_fcnet_hiddens": [7, 6]}),
            "image42",
        ),
        "state-of-image-tanh": (
            dict(STATE, model={"conv_filters": SMALL, "conv_activation": "tanh"}),
            "image42",
        ),
        "state-of-camera": (dict(STATE, model=PARTS), "camera"),
        "state-of-camera-post": (dict(STATE, model=dict(PARTS, post_fcnet_hiddens=[6])), "camera"),
        "state-of-cameras": (dict(STATE, model=dict(PARTS, fcnet_hiddens=[])), "cameras"),
        "state-of-tables": (dict(STATE, model={"fcnet_hiddens": [7]}), "tables"),
        "of-camera": ({"actor_hiddens": [9], "critic_hiddens": [8]}, "camera"),
    }
)

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
