"""Configs of R2D2 and RNNSAC, by what they say: `record_sequences.py` asks an old Ray of them."""

_LSTM = {"use_lstm": True, "lstm_cell_size": 6, "fcnet_hiddens": [8]}
_ATTENTION = {
    "use_attention": True,
    "attention_num_transformer_units": 1,
    "attention_dim": 8,
    "attention_num_heads": 2,
    "attention_head_dim": 4,
    "attention_position_wise_mlp_dim": 6,
    "attention_memory_inference": 3,
    "attention_memory_training": 7,
    "fcnet_hiddens": [7],
}
_STEPS = {"attention_use_n_prev_actions": 2, "attention_use_n_prev_rewards": 2}
_OWN = {"custom_model": "remembering"}
#: What they share.
ALWAYS = {
    "framework": "torch",
    "num_workers": 0,
    "num_gpus": 0,
    "learning_starts": 22,
    "train_batch_size": 20,
    "rollout_fragment_length": 4,
    "min_time_s_per_reporting": 0,
    "timesteps_per_iteration": 33,
}
EXPLORED = (
    *("EpsilonGreedy", "PerWorkerEpsilonGreedy", "SoftQ", "StochasticSampling", "Random"),
    *("ParameterNoise", "GaussianNoise", "OrnsteinUhlenbeckNoise", "Curiosity"),
    *("UpperConfidenceBound", "ThompsonSampling"),
)


def _with(algorithm, model, **more):
    """A config whose networks are told of a model, where the algorithm looks for it."""
    short = {"max_seq_len": 5}
    if algorithm == "R2D2":
        return {**ALWAYS, "hiddens": [8], "model": {**model, **short}, **more}
    return {**ALWAYS, "policy_model": model, "Q_model": model, "model": short, **more}


def _cases():
    for name in ("R2D2", "RNNSAC"):
        for kind in EXPLORED:
            told = {"type": kind}
            if kind == "Curiosity":
                told["sub_exploration"] = {"type": "StochasticSampling"}
            if kind.endswith("Noise"):
                told["random_timesteps"] = 0
            yield f"{name} {kind}", (name, _with(name, _LSTM, exploration_config=told))
        per_worker = {"exploration_config": {"type": "PerWorkerEpsilonGreedy"}, "num_workers": 2}
        yield f"{name} of two workers", (name, _with(name, _LSTM, **per_worker))
        yield f"{name} attention", (name, _with(name, _ATTENTION))
        yield f"{name} own model", (name, _with(name, _OWN))
    yield "R2D2 steps before attention", ("R2D2", _with("R2D2", {**_ATTENTION, **_STEPS}))
    stored = {"burn_in": 2, "zero_init_states": False}
    yield "R2D2 attention, stored states", ("R2D2", _with("R2D2", _ATTENTION, **stored))


#: Case → algorithm and config.
CASES = dict(_cases())
