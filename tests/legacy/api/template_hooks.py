"""Hooks of templates: which are called, in which order, and with what.

A trainer of `build_trainer` and a policy of `build_torch_policy` (`build_policy_class` from Ray 1.3
on) are made with a function for each hook. It runs on Python 3.7 in an old Ray, and here.
"""


def kind(value):
    """What an argument is, in a word."""
    name = type(value).__name__
    if isinstance(value, type):
        return "class"
    for attribute, found in (
        ("train", "trainer" if hasattr(value, "get_policy") else None),
        ("compute_actions", "policy"),
        ("value_function", "model"),
        ("worker_index", "env context"),
        ("action_space", "env" if hasattr(value, "step") else None),
        ("zero_grad", "optimizer"),
        ("contains", "space"),
    ):
        if found and hasattr(value, attribute):
            return found
    if hasattr(value, "keys"):
        names = set(value.keys())
        if "num_workers" in names:
            return "config"
        return "batch" if "obs" in names or "obs_flat" in names else "dict"
    return {"Tensor": "tensor", "NoneType": "None"}.get(name, name)


class Notes:
    """The calls of hooks; one that is repeated at once is told once."""

    def __init__(self):
        self.calls = []

    def hook(self, name, answer=None):
        """A function that notes its calls.

        Args:
            name: The hook's name.
            answer: What it returns: a function of its arguments.
        """

        def called(*args, **kwargs):
            call = [name, *(kind(arg) for arg in args), *sorted(kwargs)]
            if not self.calls or self.calls[-1] != call:
                self.calls.append(call)
            return answer(*args, **kwargs) if answer else None

        return called


def trainer_hooks(ray):
    """The hooks of a trainer that samples, learns and evaluates."""
    notes = Notes()
    given = {name: notes.hook(name) for name in ray.trainer_hooks}
    choice = notes.hook("get_policy_class", lambda config: ray.Pushing)
    trainer = ray.build_trainer("Hooked", ray.Pushing, get_policy_class=choice, **given)
    made = trainer(
        config={
            "env": "line",
            "num_workers": 0,
            "rollout_fragment_length": 20,
            "train_batch_size": 20,
            "evaluation_interval": 2,
            "evaluation_num_episodes": 1,
            **ray.settings,
        }
    )
    found = {"made": list(notes.calls)}
    del notes.calls[:]
    for _ in range(2):
        made.train()
    made.stop()
    return {**found, "trained": notes.calls}


def policy_hooks(ray):
    """The hooks of a policy: when it is made, when it acts, and when it learns."""
    torch, notes = ray.torch, Notes()
    answers = {
        "get_default_config": lambda: ray.default_config("PG"),
        "stats_fn": lambda policy, batch: {"seen": 1.0},
        "postprocess_fn": lambda policy, batch, *_: batch,
        "extra_action_out_fn": lambda *_: {},
        "extra_grad_process_fn": lambda *_: {},
        "optimizer_fn": lambda policy, config: torch.optim.SGD(policy.model.parameters(), 0.01),
        "loss_fn": lambda policy, model, dist, batch: model.from_batch(batch)[0].mean(),
    }
    names = ("before_init", "validate_spaces", "before_loss_init", "after_init")
    hooks = {name: notes.hook(name, answers.get(name)) for name in (*answers, *names)}

    class Mixin:
        def own(self):
            return 1

    taken = {name: hook for name, hook in hooks.items() if name in ray.policy_hooks}
    made = ray.build_policy(name="Hooked", mixins=[Mixin], **taken)
    env = ray.make_env({})
    config = dict(ray.default_config("PG"), model=dict(ray.MODEL_DEFAULTS, fcnet_hiddens=[4]))
    config.update(ray.settings)
    policy = made(env.observation_space, env.action_space, config)
    found = {"made": list(notes.calls), "mixin": policy.own()}
    del notes.calls[:]
    observation = env.reset()
    policy.compute_actions([observation, observation])
    found["acted"] = list(notes.calls)
    del notes.calls[:]
    batch = {"obs": [observation] * 2, "new_obs": [observation] * 2, "actions": [0, 1]}
    batch.update(rewards=[1.0, 1.0], dones=[False, True], eps_id=[0, 0])
    batch = ray.SampleBatch({name: ray.numpy.array(column) for name, column in batch.items()})
    policy.postprocess_trajectory(batch)
    stats = policy.learn_on_batch(batch)
    return {**found, "learned": notes.calls, "stats": sorted(stats["learner_stats"])}
