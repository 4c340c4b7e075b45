"""A script with the arguments of RLlib's examples, around their classes, that checks what came."""

import argparse

import ray
from facts import record
from ray import tune
from ray.rllib.examples.env.parametric_actions_cartpole import ParametricActionsCartPole
from ray.rllib.examples.models.parametric_actions_model import TorchParametricActionsModel
from ray.rllib.models import ModelCatalog
from ray.rllib.utils.test_utils import check_learning_achieved
from ray.tune.registry import register_env

parser = argparse.ArgumentParser()
parser.add_argument("--run", default="PPO")
parser.add_argument("--framework", choices=["tf", "tf2", "tfe", "torch"], default="torch")
parser.add_argument("--as-test", action="store_true")
parser.add_argument("--stop-iters", type=int, default=200)
parser.add_argument("--stop-timesteps", type=int, default=100000)
parser.add_argument("--stop-reward", type=float, default=150.0)
args = parser.parse_args("--as-test --stop-iters 2 --stop-reward 5".split())

ray.init()
register_env("pa_cartpole", lambda _: ParametricActionsCartPole(10))
ModelCatalog.register_custom_model("pa_model", TorchParametricActionsModel)
own = {"hiddens": [], "dueling": False} if args.run == "DQN" else {}
config = dict(
    {
        "env": "pa_cartpole",
        "model": {"custom_model": "pa_model"},
        "num_workers": 0,
        "framework": args.framework,
        "train_batch_size": 100,
        "sgd_minibatch_size": 50,
        "num_sgd_iter": 1,
        "rollout_fragment_length": 100,
    },
    **own,
)
stop = {"training_iteration": args.stop_iters, "timesteps_total": args.stop_timesteps}
results = tune.run(args.run, stop=stop, config=config, verbose=1)
if args.as_test:
    check_learning_achieved(results, args.stop_reward)
try:
    check_learning_achieved(results, 10**6)
except ValueError:
    said = "not reached"
last = results.trials[0].last_result
record(said=said, iterations=last["training_iteration"], steps=last["timesteps_total"])
