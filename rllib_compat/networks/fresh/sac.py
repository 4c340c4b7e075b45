"""New networks of SAC and CQL: a model of the catalog for the policy, and one for each critic.

Source: `agents/sac/sac_torch_model.py` (Ray 1.3 – 1.13), `algorithms/sac` of 2.x.
"""

from __future__ import annotations

from dataclasses import replace

from rllib_compat.networks.families.sac import model_of
from rllib_compat.networks.fresh.arrays import Arrays
from rllib_compat.networks.fresh.models import Model, is_image, since
from rllib_compat.networks.graph import CRITIC, POLICY, TWIN
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.components import original_space, parts_of
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.spaces import Box, Discrete, Space, TupleSpace, box

#: What torch called the stacks.
_NAMES = {POLICY: "action_model.", CRITIC: "q_net.", TWIN: "twin_q_net."}


def soft_actor_critic(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> None:
    """Draws a policy and its critics.

    Raises:
        ConfigError: Actions are neither discrete nor a vector.
    """
    if not isinstance(actions, (Box, Discrete)):
        raise ConfigError(
            f"{settings.algorithm} takes Discrete actions and vectors, and these are {actions}.",
            where="action_space",
            fix="Train PPO, which takes all of them.",
        )
    space = original_space(seen) or seen
    critics: Space = seen
    if isinstance(actions, Box):
        vector = isinstance(space, Box) and len(space.shape) == 1
        size = space.flat_size() + actions.flat_size()
        critics = box(-1.0, 1.0, (size,)) if vector else TupleSpace((space, actions))
    outputs = 2 * actions.flat_size() if isinstance(actions, Box) else actions.n
    given = {POLICY: (seen, outputs), CRITIC: (critics, 1 if isinstance(actions, Box) else outputs)}
    if settings.config.get("twin_q", True):
        given[TWIN] = given[CRITIC]
    for stack, (observed, gives) in given.items():
        # Before Ray 1.3, what looked at images was in no optimizer; that is not repeated.
        images = any(is_image(part.space) for part in parts_of(original_space(observed)))
        ray = settings.ray if since(settings, "1.3") or not images else None
        own = replace(model_of(settings, stack), ray=ray)
        # Since then, no preprocessor flattened what critics of continuous actions saw, an
        # observation and an action, and each part had layers of its own.
        flattened = observed is seen or isinstance(observed, Box) or not since(own, "1.3")
        Model(arrays, own, gives, _NAMES[stack]).draw(observed, flattened=flattened)
