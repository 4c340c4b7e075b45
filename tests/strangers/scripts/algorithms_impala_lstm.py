"""IMPALA with a worker and an LSTM."""

import ray
from facts import record
from ray.rllib.agents.impala import ImpalaTrainer

ray.init(num_cpus=4)
trainer = ImpalaTrainer(
    env="CartPole-v0",
    config={
        "num_workers": 1,
        "framework": "torch",
        "rollout_fragment_length": 20,
        "train_batch_size": 40,
        "min_iter_time_s": 1,
        "num_gpus": 0,
        "vtrace": True,
        "lr_schedule": [[0, 0.005], [1000, 0.001]],
        "model": {"use_lstm": True, "lstm_cell_size": 8, "max_seq_len": 10, "fcnet_hiddens": [8]},
    },
)
result = trainer.train()
for _ in range(5):
    if result["info"]["num_steps_trained"]:
        break
    result = trainer.train()
record(
    trained=result["info"]["num_steps_trained"] > 0,
    sampled=result["timesteps_total"] > 0,
    finite=result["episode_reward_mean"] > 0,
    states=len(trainer.get_policy().get_initial_state()),
)
trainer.stop()
