"""What a proof compared: how far each output of each policy is off."""

from __future__ import annotations

from rllib_compat.neutral.frozen import frozen

#: What stands for the outputs of a module where only its numbers can be compared.
WEIGHTS = "weights"

#: What stands for actions that were chosen by what the outputs mean.
HEAD = "head"

#: The kind of inputs that the old Ray itself computed.
RECORDED = "recorded"

#: How many times the measured error (see `rounding`) a difference may be. Libraries add up in
#: different orders: over 600 networks of real checkpoints, torch strays up to 6.1 times as far as
#: our own float32.
TIMES = 10

#: Where float32 allows more than this part of the largest output, the report says so.
_BLURRED = 1e-2


@frozen
class Difference:
    """How far one output of one policy is off.

    Attributes:
        policy_id: The policy.
        output: `action_dist_inputs` or `vf_preds`.
        absolute: The largest absolute difference over all inputs.
        relative: The largest relative difference, where the old output is not tiny.
        inputs: How many inputs were compared.
        ok: Whether every number is within `TIMES` times the old network's own error.
        own_error: The largest error of the old network itself in float32; 0: nothing is allowed.
        times: How many times its own error the worst number is off.
        size: The largest absolute output.
        kind: What the inputs were: `random`, `given`, or `recorded` in the old Ray.
    """

    policy_id: str
    output: str
    absolute: float
    relative: float
    inputs: int
    ok: bool
    own_error: float = 0.0
    times: float = 0.0
    size: float = 0.0
    kind: str = "random"

    @property
    def blurred(self) -> bool:
        """Whether float32 blurs the output so much that the comparison sees little."""
        return TIMES * self.own_error > _BLURRED * self.size > 0
