"""What is known of an algorithm that any RLlib had."""

from __future__ import annotations

from rllib_compat.neutral.frozen import frozen

#: The optimizers of SAC's learner, by today's names.
SOFT_ACTOR_CRITIC = ("policy", "qf", "qf_twin", "alpha")


@frozen
class Algorithm:
    """An algorithm of any RLlib.

    Attributes:
        name: The name it was last registered under, without `contrib/`.
        becomes: The current algorithm that learns the same way: itself where Ray still has it, or
            this package does (`ours` says so); empty where none does.
        ours: Whether it is this package that has it (`algorithms/`), since Ray removed it.
        new_stack_only: Whether nothing of it runs on the old API stack.
        why: Of an algorithm that Ray removed: what is different now, or what to do instead.
        undistributed: Of an algorithm whose replay is distributed: the one without that, which
            takes its place where only the old API stack can run a config.
        derives: The algorithm whose class its own was derived from, if any: their networks and
            most of their keys are the same.
        own_policy: Whether its policies had a class of their own, not that of what it derives from.
        distributes: Whether it is what it derives from, with other processes at work: only its own
            keys distinguish them.
        stems: What stood before `SUFFIXES` in its class names, its trainers' first.
        modules: The modules below `ray.rllib.agents` that its class could be imported from.
        reader: How `networks/` reads its policies, which what it becomes trains on; empty if it
            can't.
        optimizers: The optimizers of each of its policies, by today's names.
        offline: Whether it learns from recorded steps and never samples.
        replays: Whether it learns from a replay buffer that it fills itself, or (CQL) inherited.
    """

    name: str
    becomes: str = ""
    ours: bool = False
    new_stack_only: bool = False
    why: str = ""
    undistributed: str = ""
    derives: str = ""
    own_policy: bool = True
    distributes: bool = False
    stems: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    reader: str = ""
    optimizers: tuple[str, ...] = ("default_optimizer",)
    offline: bool = False
    replays: bool = False

    def __post_init__(self) -> None:
        if not self.stems:
            object.__setattr__(self, "stems", (self.name,))
        if self.ours:
            object.__setattr__(self, "becomes", self.name)

    @property
    def removed(self) -> bool:
        """Whether today's Ray no longer has it."""
        return self.ours or self.becomes != self.name

    @property
    def home(self) -> str:
        """The module that its class and its config's are in, where it is trained by its name."""
        package = "rllib_compat" if self.ours else "ray.rllib"
        return f"{package}.algorithms.{self.name.lower()}"

    @property
    def soft_actor_critic(self) -> bool:
        """Whether its learner has SAC's optimizers, and a temperature."""
        return self.optimizers == SOFT_ACTOR_CRITIC
