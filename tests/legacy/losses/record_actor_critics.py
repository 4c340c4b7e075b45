"""Records updates of IMPALA, APPO, SAC, CQL and MARWIL as an old Ray made them.

Usage: `python record_actor_critics.py OUT [CASE …]`, with the Python of an environment that has
Ray 1.13.0, torch and TensorFlow 2 (it runs on Python 3.8). It writes `OUT/<algorithm>-<case>.npz`
and `OUT/rmsprop.npz`; `tests/unit/algorithms/test_actor_critics.py` compares.

A case holds, by name:

    config.*        the settings that matter, as the old Ray knew them
    chunk.<i>.*     chunks of episodes: obs (with the one after the last step), actions, rewards,
                    action_logp, action_dist_inputs, of an LSTM state_out_0 and state_out_1, and
                    whether the last step was `done`
    batch.*         of SAC and CQL: transitions
    weights.*, targets.*    before, by the old names; those of the target network
    after.<n>.*     the weights after each of two updates with all of it
    told.<n>.*      what the policy told of each

`rmsprop.npz` has steps of TensorFlow's RMSprop: `<case>.config.*`, `<case>.gradients` and
`<case>.weights`, a row a step.
"""

import random

import gym
import numpy as np
import torch
from ray.rllib.agents.cql import cql
from ray.rllib.agents.cql.cql_torch_policy import CQLTorchPolicy
from ray.rllib.agents.impala import impala
from ray.rllib.agents.impala.vtrace_torch_policy import VTraceTorchPolicy
from ray.rllib.agents.marwil import marwil
from ray.rllib.agents.marwil.marwil_torch_policy import MARWILTorchPolicy
from ray.rllib.agents.ppo import appo
from ray.rllib.agents.ppo.appo_torch_policy import AsyncPPOTorchPolicy
from ray.rllib.agents.sac import sac
from ray.rllib.agents.sac.sac_torch_policy import SACTorchPolicy
from ray.rllib.policy.sample_batch import SampleBatch
from record_ppo import LSTM, expected, remembered
from recording import draw_weights, named, record_all, save, steps_of

SEED = 11
DISCRETE = gym.spaces.Discrete(3)
BOX = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
SEEN = gym.spaces.Box(-2.0, 2.0, (4,), np.float32)
POLICIES = {
    "impala": (VTraceTorchPolicy, impala.DEFAULT_CONFIG),
    "appo": (AsyncPPOTorchPolicy, appo.DEFAULT_CONFIG),
    "marwil": (MARWILTorchPolicy, marwil.DEFAULT_CONFIG),
    "sac": (SACTorchPolicy, sac.DEFAULT_CONFIG),
    "cql": (CQLTorchPolicy, cql.CQL_DEFAULT_CONFIG),
}
#: Case → actions, settings.
CASES = {
    "impala-discrete": (DISCRETE, {"lr": 0.01}),
    "impala-clipped": (
        DISCRETE,
        {"lr": 0.01, "vtrace_clip_rho_threshold": 0.9, "grad_clip": 3.0},
    ),
    "impala-continuous": (BOX, {"lr": 0.003, "entropy_coeff": 0.03, "vf_loss_coeff": 0.2}),
    "impala-all-steps": (DISCRETE, {"lr": 0.01, "vtrace_drop_last_ts": False}),
    "impala-ends": (DISCRETE, {"lr": 0.01}),
    "impala-lstm": (DISCRETE, {"lr": 0.01}),
    "impala-lstm-all-steps": (BOX, {"lr": 0.003, "vtrace_drop_last_ts": False}),
    "impala-rmsprop": (
        DISCRETE,
        {"lr": 0.01, "opt_type": "rmsprop", "decay": 0.5, "momentum": 0.3, "epsilon": 0.01},
    ),
    "appo-discrete": (DISCRETE, {"lr": 0.01, "use_kl_loss": False}),
    "appo-kl": (DISCRETE, {"lr": 0.01, "use_kl_loss": True, "kl_coeff": 0.7, "clip_param": 0.2}),
    "appo-lstm": (DISCRETE, {"lr": 0.01, "use_kl_loss": True, "kl_coeff": 0.7}),
    "appo-gae": (DISCRETE, {"lr": 0.01, "vtrace": False, "lambda": 0.9, "entropy_coeff": 0.02}),
    "appo-gae-kl": (
        BOX,
        {"lr": 0.003, "vtrace": False, "use_kl_loss": True, "kl_coeff": 0.7, "clip_param": 0.2},
    ),
    "marwil-discrete": (DISCRETE, {"lr": 0.01, "beta": 0.7, "vf_coeff": 0.5}),
    "marwil-bc": (DISCRETE, {"lr": 0.01, "beta": 0.0}),
    "marwil-continuous": (
        BOX,
        {
            "lr": 0.003,
            "bc_logstd_coeff": 0.3,
            "grad_clip": 0.5,
            "moving_average_sqd_adv_norm_start": 4.0,
            "moving_average_sqd_adv_norm_update_rate": 0.2,
        },
    ),
    "sac-discrete": (DISCRETE, {}),
    "sac-continuous": (BOX, {"n_step": 3, "gamma": 0.9, "grad_clip": 0.5}),
    # The first of its updates clones.
    "cql-continuous": (BOX, {"bc_iters": 3, "num_actions": 4, "train_batch_size": 16}),
    "cql-settings": (
        BOX,
        {
            "bc_iters": 0,
            "num_actions": 3,
            "train_batch_size": 16,
            "n_step": 3,
            "gamma": 0.9,
            "temperature": 0.7,
            "min_q_weight": 2.0,
            "grad_clip": 0.1,
        },
    ),
}
REPLAYING = ("sac", "cql")
RATES = {f"{which}_learning_rate": 0.01 for which in ("actor", "critic", "entropy")}
#: The steps of each chunk, and whether its episode ended with it: two fragments of ten steps.
CHUNKS = ((6, True), (4, False), (10, False))
#: The same where episodes end with fragments, too.
ENDS = ((10, True), (6, True), (4, True))


def record(case):
    """Records one case."""
    algorithm = case.partition("-")[0]
    actions, settings = CASES[case]
    policy_class, defaults = POLICIES[algorithm]
    config = dict(
        defaults, framework="torch", num_gpus=0, num_workers=0, rollout_fragment_length=10
    )
    config.update(settings)
    model = {"fcnet_hiddens": [8, 6], "fcnet_activation": "tanh", "vf_share_layers": False}
    if "lstm" in case:
        model = LSTM
    if algorithm in REPLAYING:
        config["optimization"] = RATES
        for name in ("policy_model", "Q_model"):
            config[name] = dict(config[name], fcnet_hiddens=[8, 6], fcnet_activation="tanh")
    else:
        config["model"] = dict(config["model"], **model)
    policy = policy_class(SEEN, actions, config)
    if config.get("beta"):  # a policy tries its loss on zeros when it is made, which moved it
        policy._moving_average_sqd_adv_norm.fill_(config["moving_average_sqd_adv_norm_start"])
    drawn = np.random.RandomState(7)
    networks = {"weights": policy.model}
    if hasattr(policy, "target_models"):
        networks["targets"] = policy.target_models[policy.model]
    found = {f"config.{name}": repr(value) for name, value in settings.items()}
    for kind, network in networks.items():
        draw_weights(drawn, network)
        found.update(named(kind, network.state_dict()))
    if algorithm in REPLAYING:
        samples = transitions(drawn, actions)
        found.update(named("batch", samples))
    else:
        lengths = ENDS if case.endswith("ends") else CHUNKS
        chunks = [made_up(policy, drawn, actions, *chunk) for chunk in lengths]
        for index, chunk in enumerate(chunks):
            chunk["eps_id"] = chunk["unroll_id"] = np.full(len(chunk), index)
            found.update(steps_of(index, chunk))
    for number in (1, 2):
        if settings.get("vtrace") is False:
            for chunk in chunks:
                chunk["vf_preds"] = expected(policy, chunk)
        if algorithm not in REPLAYING:
            made = [policy.postprocess_trajectory(chunk.copy()) for chunk in chunks]
            samples = SampleBatch.concat_samples(made)
        torch.manual_seed(SEED)
        told = policy.learn_on_batch(samples.copy())["learner_stats"]
        if algorithm in REPLAYING:
            policy.update_target()
        if settings.get("use_kl_loss"):
            policy.update_kl(told["kl"])
        found.update(named(f"told.{number}", {n: v for n, v in told.items() if np.size(v) == 1}))
        for kind, network in networks.items():
            place = "after" if kind == "weights" else "after_targets"
            found.update(named(f"{place}.{number}", network.state_dict()))
    return found


def made_up(policy, drawn, actions, steps, done):
    """A chunk of an episode, as a policy with weights of its own had sampled it."""
    obs = drawn.uniform(-2, 2, (steps + 1, 4)).astype(np.float32)
    logits = drawn.randn(steps, 4 if actions is BOX else 3).astype(np.float32) * 0.5
    acts = policy.dist_class(torch.from_numpy(logits), policy.model)
    if actions is BOX:
        taken = drawn.randn(steps, 2).astype(np.float32)
    else:
        taken = drawn.randint(0, actions.n, steps)
    chunk = SampleBatch(
        {
            "obs": obs[:-1],
            "new_obs": obs[1:],
            "actions": taken,
            "rewards": drawn.uniform(-1, 2, steps).astype(np.float32),
            "dones": np.array([False] * (steps - 1) + [done]),
            "agent_index": np.zeros(steps, int),
            "action_dist_inputs": logits,
            "action_logp": acts.logp(torch.from_numpy(taken)).numpy(),
        }
    )
    if policy.is_recurrent():
        with torch.no_grad():
            remembered(policy, chunk)  # adds its states
    return chunk


def transitions(drawn, actions, count=16):
    """Transitions as a replay buffer gives them."""
    taken = drawn.randint(0, 3, count)
    if actions is BOX:
        taken = drawn.uniform(-0.9, 0.9, (count, 2)).astype(np.float32)
    return SampleBatch(
        {
            "obs": drawn.uniform(-2, 2, (count, 4)).astype(np.float32),
            "new_obs": drawn.uniform(-2, 2, (count, 4)).astype(np.float32),
            "actions": taken,
            "rewards": drawn.uniform(-1, 2, count).astype(np.float32),
            "dones": drawn.uniform(size=count) < 0.3,
            "weights": drawn.uniform(0.5, 1, count).astype(np.float32),
        }
    )


def record_rmsprop():
    """Records steps of RMSprop as graphs of TensorFlow had it, and as Keras has it."""
    import tensorflow as tf

    drawn, found = np.random.RandomState(5), {}
    tf.compat.v1.disable_eager_execution()
    for case, momentum in (("graph", 0.0), ("graph-momentum", 0.4), ("keras-momentum", 0.4)):
        told = {"lr": 0.03, "alpha": 0.8, "momentum": momentum, "eps": 0.1}
        gradients = drawn.randn(4, 3).astype(np.float32)
        weight, gradient = tf.Variable([0.5, -0.2, 0.1]), tf.compat.v1.placeholder(tf.float32, (3,))
        kind = tf.keras.optimizers.RMSprop
        if case.startswith("graph"):
            kind = tf.compat.v1.train.RMSPropOptimizer
        step = kind(*told.values()).apply_gradients([(gradient, weight)])
        rows = []
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            for given in gradients:
                session.run(step, {gradient: given})
                rows.append(session.run(weight))
        found.update(named(f"{case}.config", {n: repr(v) for n, v in told.items()}))
        found.update(named(case, {"gradients": gradients, "weights": np.array(rows)}))
    return found


if __name__ == "__main__":
    random.seed(SEED)
    save("rmsprop", record_rmsprop())
    record_all(record, CASES)
