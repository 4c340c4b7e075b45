"""What an old Ray computed of a loss on a fixed batch; `tests/legacy/losses` has it."""

import ast

import numpy as np

from rllib_compat.ray_versions import releases

#: What is compared → the largest difference that the running test has seen, over 1 + the number.
DIFFERENCES = {}
#: A tolerance that is asked for → what is compared; others compare ours with ours.
KINDS = {1e-5: "loss", 1e-4: "update"}


def close(ours, theirs, tolerance, kind=None):
    """Asserts that numbers are equal, up to a tolerance that is absolute and relative."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    kind = kind or KINDS.get(tolerance)
    if kind is not None and np.size(theirs):
        difference = float(np.max(np.abs(ours - theirs) / (1 + np.abs(theirs))))
        DIFFERENCES[kind] = max(DIFFERENCES.get(kind, 0.0), difference)


def close_all(ours, theirs, tolerance, kind=None):
    """Asserts that ours are equal to all of theirs, by their names."""
    for name, array in theirs.items():
        close(ours[name], array, tolerance, kind)


def set_weights(learner, arrays, module_id="default_policy"):
    """Gives a module of a learner all of its weights."""
    module = learner.module[module_id]
    assert module.get_state().keys() == arrays.keys()
    module.set_state(arrays)


def literal(text):
    """A setting that was recorded as text: what it is the text of, or itself."""
    try:
        return ast.literal_eval(str(text))
    except (ValueError, SyntaxError):
        return str(text)


class Recording:
    """One case; a file of arrays called `kind.name`."""

    def __init__(self, path):
        with np.load(path) as file:
            self.found = {name: file[name] for name in file}

    def below(self, kind):
        """The arrays of a kind, by their names in it."""
        return {
            name.removeprefix(f"{kind}."): value
            for name, value in self.found.items()
            if name.startswith(f"{kind}.")
        }

    def told(self):
        """The settings, as the old Ray knew them."""
        return {name: literal(text) for name, text in self.below("config").items()}

    def chunks(self):
        """The arrays of each numbered `chunk`."""
        count = len({name.split(".")[1] for name in self.found if name.startswith("chunk.")})
        return [self.below(f"chunk.{index}") for index in range(count)]


def updated(learner, module_id, columns, *, steps, sampled=0):
    """Updates one module; returns what it told, and its gradients before they are clipped."""
    from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

    told, gradients, compute = {}, {}, learner.compute_gradients

    def see(loss):
        module = learner.module[module_id]
        names = {parameter: name for name, parameter in module.named_parameters()}
        made = compute(loss)
        gradients.update({names[p]: g.numpy().copy() for p, g in made.items() if g is not None})
        return made

    learner.compute_gradients = see
    learner.metrics.log_dict = lambda values, **_: told.update(values)
    batch = MultiAgentBatch({module_id: SampleBatch(columns)}, steps)
    update = learner.update if releases.at_least("2.44") else learner.update_from_batch
    update(batch=batch, timesteps={"num_env_steps_sampled_lifetime": sampled})
    learner.compute_gradients = compute
    numbers = {n: np.asarray(v.detach() if hasattr(v, "detach") else v) for n, v in told.items()}
    return {
        n: float(v) for n, v in numbers.items() if isinstance(n, str) and v.size == 1
    }, gradients


def same_losses(recorded, terms, told, td_errors, gradients):
    """Asserts that loss terms, TD errors and gradients are those of a recording, to 1e-5."""
    for name in terms:
        close(told[name], recorded.found[f"loss.{name}"], 1e-5)
    close(td_errors, recorded.found["td_errors"], 1e-5)
    theirs = recorded.arrays("gradients")
    assert gradients.keys() == theirs.keys()
    close_all(gradients, theirs, 1e-5)
