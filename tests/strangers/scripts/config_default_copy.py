"""Default configs as dicts: copied, read, merged, printed."""

import copy

import ray
from facts import record
from ray.rllib.agents import a3c, dqn, ppo
from ray.rllib.agents.trainer import COMMON_CONFIG, with_common_config
from ray.rllib.models.catalog import MODEL_DEFAULTS
from ray.tune.logger import pretty_print
from ray.tune.utils import merge_dicts

ray.init()
config = copy.deepcopy(ppo.DEFAULT_CONFIG)
merged = merge_dicts(dqn.DEFAULT_CONFIG, {"model": {"fcnet_hiddens": [3]}, "n_step": 4})
own = with_common_config({"my_key": 1, "gamma": 0.5})
record(
    ppo={k: config[k] for k in ("lr", "clip_param", "lambda", "kl_coeff", "vf_clip_param")},
    sizes=[config["train_batch_size"], config["sgd_minibatch_size"], config["num_sgd_iter"]],
    dqn=[merged["n_step"], merged["model"]["fcnet_hiddens"], merged["double_q"], merged["dueling"]],
    kept=dqn.DEFAULT_CONFIG["n_step"],
    a3c=[a3c.DEFAULT_CONFIG["vf_loss_coeff"], a3c.DEFAULT_CONFIG["entropy_coeff"]],
    model=[MODEL_DEFAULTS["fcnet_hiddens"], MODEL_DEFAULTS["max_seq_len"]],
    own=[own["my_key"], own["gamma"], own["horizon"]],
    common=[COMMON_CONFIG["num_workers"], COMMON_CONFIG["batch_mode"]],
    printed="episode_reward_mean: 1.5" in pretty_print({"episode_reward_mean": 1.5}),
)
