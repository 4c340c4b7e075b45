"""Which optimizers trained a network, and which of its arrays each of them trained."""

from __future__ import annotations

from collections.abc import Iterable

from rllib_compat.networks.graph import CRITIC, POLICY, TWIN
from rllib_compat.neutral.frozen import frozen

#: What today's learner calls the only optimizer of a module.
DEFAULT = "default_optimizer"

#: The temperature, as a learner of SAC trains it.
ALPHA = "log_alpha"

#: CQL's Lagrange multiplier (`lagrangian=True`) until Ray 2.x.
MULTIPLIER = "log_alpha_prime"


#: The epsilon of SAC's optimizers, then (torch) and now (`sac_torch_learner.py`), and of DDPG's.
_EPS = 1e-7


@frozen
class Group:
    """One of the optimizers that an old policy had.

    Attributes:
        name: What today's learner calls it; None: it has none of the kind.
        stack: What the canonical names of its arrays begin with; with `modules=()`, it trained
            this number alone, which is in no network.
        modules: What their names in the old policy began with, of every torch.
        eps: The epsilon of today's learner's Adam.
        scale: What today's gradients are of those of that Ray, where its loss was a multiple.
    """

    name: str | None
    stack: str | tuple[str, ...] = ""
    modules: tuple[str, ...] = ()
    eps: float = 1e-8
    scale: float = 1.0


#: One optimizer for all of a network.
WHOLE = (Group(DEFAULT, modules=("",)),)


def soft_actor_critic(arrays: Iterable[str], unused: Iterable[str]) -> tuple[Group, ...]:
    """The optimizers of SAC and CQL, in the order of the old policies' lists.

    Args:
        arrays: The network's arrays by canonical name.
        unused: What else was among the weights.
    """
    groups = [
        Group("policy", f"{POLICY}.", ("action_model.", "pi_encoder.", "pi.", "net.pi."), _EPS),
        Group("qf", f"{CRITIC}.", ("q_net.", "qf_encoder.", "qf.", "net.q."), _EPS),
    ]
    if any(name.startswith(f"{TWIN}.") for name in arrays):
        modules = ("twin_q_net.", "qf_twin_encoder.", "qf_twin.", "net.twin_q.")
        groups.append(Group("qf_twin", f"{TWIN}.", modules, _EPS))
    groups.append(Group("alpha", ALPHA, eps=_EPS))
    if any(name.startswith(MULTIPLIER) for name in unused):
        groups.append(Group(None, MULTIPLIER, eps=_EPS))
    return tuple(groups)


#: The optimizers of DDPG and TD3: one for both critics.
ACTOR_AND_CRITIC = (
    Group("actor", f"{POLICY}.", ("policy_model.", "net.pi."), eps=_EPS),
    Group(
        "critic",
        (f"{CRITIC}.", f"{TWIN}."),
        ("q_model.", "twin_q_model.", "net.q.", "net.twin_q."),
        eps=_EPS,
    ),
)
