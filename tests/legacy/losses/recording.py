"""What the scripts share that record what old Rays computed. It runs on Python 3.7."""

import sys
from pathlib import Path

import numpy as np

#: Parameters that are no weights of layers.
_NO_WEIGHTS = ("log_alpha", "target_entropy", "action_out_squashed")
#: What an old policy adds to the steps that it samples.
SAMPLED = ("action_logp", "action_dist_inputs", "state_out_0", "state_out_1")


def record_all(record, cases, prefix=""):
    """Records the cases that the command line names, or all, into the folder that it names."""
    for case in sys.argv[2:] or cases:
        save(prefix + case, record(case))


def save(name, found):
    """Writes arrays into the folder that the command line names."""
    np.savez_compressed(str(Path(sys.argv[1]) / (name + ".npz")), **found)


def named(kind, arrays):
    """Copies of arrays (Ray gives its weights themselves), by their kind and their names."""
    return {f"{kind}.{name}": np.array(array) for name, array in arrays.items()}


def copied(batch):
    """A batch whose arrays nobody else has."""
    return {name: column.copy() for name, column in batch.items()}


def draw_weights(drawn, *networks, scale=0.4):
    """Draws new weights: heads begin so small that no mistake would show."""
    import torch

    for network in networks:
        for name, weight in network.named_parameters():
            if not any(part in name for part in _NO_WEIGHTS):
                made = drawn.randn(*weight.shape).astype(np.float32) * scale
                weight.data = torch.from_numpy(made)


def gradients_of(loss, model, parameters=None):
    """The gradients of a loss by name, before any clipping: of some parameters, or of all."""
    import torch

    names = {id(weight): name for name, weight in model.named_parameters()}
    chosen = [p for p in parameters or model.parameters() if p.requires_grad]
    made = torch.autograd.grad(loss, chosen, retain_graph=True, allow_unused=True)
    pairs = zip(chosen, made)  # noqa: B905 - Python 3.7
    return named("gradients", {names[id(p)]: g for p, g in pairs if g is not None})


def steps_of(index, chunk, sampled=SAMPLED):
    """A chunk of an episode as a case holds it, with the observation after its last step."""
    kept = {n: chunk[n] for n in ("actions", "rewards", *sampled) if n in chunk}
    kept["obs"] = np.concatenate([chunk["obs"], chunk["new_obs"][-1:]])
    return named(f"chunk.{index}", dict(kept, done=chunk["dones"][-1]))


def pad(batch, sequences):
    """Puts zeros behind sequences, and marks their ends: `(steps, whether the episode ended)`."""
    for row, (steps, done) in enumerate(sequences):
        for name in ("obs", "new_obs", "actions", "rewards", "weights"):
            if name in batch:
                batch[name][row, steps:] = 0
        batch["dones"][row, steps - 1] = done
    batch["seq_lens"] = np.array([steps for steps, _ in sequences], np.int32)
    return batch


def flat(batch):
    """Padded sequences as old policies took them: `[B * T, …]`, but for states and lengths."""
    from ray.rllib.policy.sample_batch import SampleBatch

    steps = batch["obs"].shape[1]
    made = SampleBatch(
        {
            name: part.copy()
            if part.ndim == 1 or "state" in name
            else part.reshape(-1, *part.shape[2:])
            for name, part in batch.items()
        }
    )
    made.zero_padded, made.max_seq_len = True, steps
    return made
