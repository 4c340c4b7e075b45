"""Networks that give no numbers any more, told in other words than torch's."""

from __future__ import annotations

from rllib_compat.neutral.errors import CompatError

#: What torch says where it is to draw of a distribution whose parameters are NaN, or vanish.
_TORCH_SAYS = ("to satisfy the constraint", "probability tensor contains either")


def diverged(error: Exception) -> CompatError | None:
    """What to raise in the place of torch's error; None where it is another one.

    It is no difference to the old Rays, which came to the same (on TensorFlow, with NaN as weights
    and no error).

    Args:
        error: What an iteration raised, here or in a worker.
    """
    if not any(said in str(error) for said in _TORCH_SAYS):
        return None
    return CompatError(
        "The network gives no numbers any more: its weights, or what it observes, have grown too "
        "large.",
        where="train()",
        fix="Begin anew, or from a checkpoint before, with a smaller lr, with grad_clip, or with "
        "observations of about -1 to 1: networks took images as bytes of 0 - 255, so divide them "
        "in the environment, or set observation_filter to MeanStdFilter.",
    )
