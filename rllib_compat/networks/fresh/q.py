"""New Q-networks: a base model, and two streams of dense layers.

Sources: `agents/dqn/{dqn_torch_model,dqn_torch_policy,simple_q_torch_policy}.py` (Ray 0.8.5 –
1.13), `algorithms/dqn` of 2.x.
"""

from __future__ import annotations

from dataclasses import replace

from rllib_compat.networks.families.q_head import Head
from rllib_compat.networks.fresh.actor_critic import wrapper
from rllib_compat.networks.fresh.arrays import Arrays
from rllib_compat.networks.fresh.models import Model, on_torch, since
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.spaces import Discrete, Space

#: What a base model gives where it has no hidden layers to tell.
_FEATURES = 256


def q_network(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> None:
    """Draws a Q-network.

    Raises:
        ConfigError: Actions are not discrete, or there is an LSTM that only R2D2 has.
    """
    if not isinstance(actions, Discrete):
        raise ConfigError(
            f"{settings.algorithm} chooses among discrete actions, and these are {actions}.",
            where="action_space",
            fix="Train SAC, DDPG or TD3, or make the environment's actions Discrete.",
        )
    if settings.model.get("use_attention") and since(settings, "1.2"):
        raise ConfigError(
            f"{settings.algorithm} has no attention net.",
            where="model.use_attention",
            fix="Leave it out, or train PPO, APPO or IMPALA.",
        )
    if settings.model.get("use_lstm") and settings.algorithm != "R2D2":
        raise ConfigError(
            f"{settings.algorithm} asks its network without states, and so learned with an LSTM in "
            "no Ray.",
            where="model.use_lstm",
            fix="Train R2D2, or leave it out. legacy_ray='today' makes today's networks, which may "
            "have one.",
        )
    head = Head.of(settings)
    if settings.algorithm == "SimpleQ":  # which ignored them
        head = replace(head, hiddens=())
    # The base model ends in a hidden layer where others follow.
    features = [_FEATURES, *settings.model.get("fcnet_hiddens", ())][-1]
    gives = features if head.hiddens else actions.n * head.num_atoms
    around = wrapper(arrays, settings, seen, actions)
    if around is not None:
        arrays.dense("_logits_branch._model.0", around, gives)
    else:
        base = {**settings.model, "no_final_linear": bool(head.hiddens)}
        Model(arrays, replace(settings, model=base, free_log_std=False), gives).draw(seen)
    if not head.hiddens and not head.noisy:
        return
    outputs = {"advantage": actions.n * head.num_atoms}
    if head.dueling:
        outputs["value"] = head.num_atoms
    # Glorot and Bengio's way, on torch since Ray 1.3.
    draw = arrays.dense if not on_torch(settings) or since(settings, "1.3") else arrays.linear
    sigma = float(settings.config.get("sigma0", 0.5))
    for stream, letter in (("advantage", "A"), ("value", "V")):
        if stream not in outputs:
            continue
        takes = gives
        module = f"{stream}_module"
        for number, size in enumerate(head.hiddens):
            layer = f"{module}.dueling_{letter}_{number}"
            if head.noisy:
                takes = arrays.noisy(layer, takes, size, sigma)
                continue
            takes = draw(f"{layer}._model.0", takes, size)
            if head.norm:
                arrays.norm(f"{module}.LayerNorm_{letter}_{number}", size)
        last = f"{module}.{letter}"
        if head.noisy:
            arrays.noisy(last, takes, outputs[stream], sigma)
        else:
            draw(f"{last}._model.0", takes, outputs[stream])
