"""CQL's updates as the old Rays made them (`rllib/agents/cql`).

Today's learner moves temperature, actor and critics at once, looks one step ahead whatever `n_step`
says, and counts the updates of the first phase from zero in each iteration, so that the actor may
clone for ever. Here they move one after the other, each using those that have moved already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import tree
from ray.rllib.core.columns import Columns

from rllib_compat.algorithms.legacy_training import LegacyTraining
from rllib_compat.algorithms.objectives import conservative_gap, td_targets
from rllib_compat.networks.modules.sac import LOGITS, Q_VALUES, TWIN_Q_VALUES, CQLModule

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig


class LegacyCQLLearner:
    """Makes the updates of an old CQL; the first base of Ray's learner class."""

    legacy: ClassVar[LegacyTraining]
    config: Any
    module: Any
    metrics: Any
    curr_log_alpha: Any
    target_entropy: Any

    def _update(self, batch: Mapping[str, Any], **kwargs: object) -> Any:
        """Updates each module; one of the user's own as Ray does."""
        if not all(isinstance(self.module[name].unwrapped(), CQLModule) for name in batch):
            return super()._update(batch, **kwargs)  # type: ignore[misc]  # of the real learner
        return {}, {name: self._learn(name, batch[name]) for name in batch}, {}

    def _learn(self, module_id: str, batch: Mapping[str, Any]) -> Any:
        """Moves temperature, actor and critics of a module; returns the sum of their losses."""
        net = _Networks(self.module[module_id].unwrapped())
        config = self.config.get_config_for_module(module_id)
        seen, following = batch[Columns.OBS], batch[Columns.NEXT_OBS]
        log_alpha, first = self.curr_log_alpha[module_id], self._is_cloning(module_id, config)

        distribution = net.policy(seen)
        actions, logp = net.draw(distribution)
        alpha_loss = -(log_alpha * (logp + self.target_entropy[module_id]).detach()).mean()
        self._step(module_id, "alpha", alpha_loss)

        alpha = log_alpha.detach().exp()
        worth = distribution.logp(batch[Columns.ACTIONS]) if first else net.least(seen, actions)
        actor_loss = (alpha * logp - worth).mean()
        self._step(module_id, "policy", actor_loss)

        with torch.no_grad():
            then, _ = net.draw(net.policy(following))
            after = net.least(following, then, target=True)
            rewards, ended = batch[Columns.REWARDS], batch[Columns.TERMINATEDS]
            targets = td_targets(rewards, ended, after, config.gamma**config.n_step)
            tried = self._draw_actions(net, seen, following, config.num_actions)
        repeated = _repeat(seen, config.num_actions)
        logged: dict[str, Any] = {}
        losses, errors = [], []
        for critic, values in net.critics(seen, batch[Columns.ACTIONS]).items():
            others = torch.cat(
                [
                    net.critics(repeated, acts)[critic].view(len(targets), -1) - density
                    for acts, density in tried
                ],
                dim=1,
            )
            gap = config.min_q_weight * conservative_gap(values, others, config.temperature)
            losses.append((values - targets).square().mean() + gap)
            errors.append((values - targets).abs().detach())
            logged.setdefault("cql_loss", gap)
            logged.setdefault("values", values.detach())
        for name, loss in zip(("qf", "qf_twin"), losses, strict=False):
            self._step(module_id, name, loss)

        values = logged.pop("values")
        logged |= dict(zip(("qf_loss", "qf_twin_loss"), losses, strict=False))
        logged |= {
            "policy_loss": actor_loss,
            "alpha_loss": alpha_loss,
            "alpha_value": alpha[0],
            "log_alpha_value": alpha.log()[0],
            "target_entropy": self.target_entropy[module_id],
            "qf_mean": values.mean(),
            "qf_max": values.max(),
            "qf_min": values.min(),
            "td_error_mean": torch.stack(errors).mean(),
        }
        self.metrics.log_dict(logged, key=module_id, window=1)
        return (actor_loss + alpha_loss + sum(losses)).detach()

    def _is_cloning(self, module_id: str, config: AlgorithmConfig) -> bool:
        """Whether the actor still clones; its optimizer, which is saved, knows how often it has."""
        slots = self.get_optimizer(module_id, "policy").state.values()  # type: ignore[attr-defined]
        made = next((int(slot["step"]) for slot in slots), 0)
        return made + _COUNTED < int(config.bc_iters)

    def _draw_actions(
        self, net: _Networks, seen: object, following: object, count: int
    ) -> list[Any]:
        """Actions for each observation, and the logarithm of how likely they were."""
        space = net.module.action_space
        shape = (len(tree.flatten(seen)[0]) * count, space.shape[-1])
        even = torch.empty(shape).uniform_(float(space.low[0]), float(space.high[0]))
        now, now_logp = net.draw(net.policy(_repeat(seen, count)))
        then, then_logp = net.draw(net.policy(_repeat(following, count)))
        return [
            (even.to(now.device), np.log(0.5 ** shape[1])),
            (then, then_logp.view(-1, count)),
            (now, now_logp.view(-1, count)),
        ]

    def _step(self, module_id: str, name: str, loss: torch.Tensor) -> None:
        """One step of an optimizer, which no `grad_clip` ever held back."""
        optimizer = self.get_optimizer(module_id, name)  # type: ignore[attr-defined]
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        gradients = torch.autograd.grad(loss, parameters, retain_graph=True)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()


#: What the old policies had counted before their first update: an update to try, and this one.
_COUNTED = 2


class _Networks:
    """What a module's networks give."""

    def __init__(self, module: CQLModule) -> None:
        self.module = module
        self._make = module.get_train_action_dist_cls().from_logits

    def policy(self, seen: object) -> Any:
        """The distribution of actions."""
        return self._make(self.module.net({Columns.OBS: seen}, [LOGITS])[LOGITS])

    def draw(self, distribution: Any) -> tuple[Any, Any]:
        """Actions, and their log-probabilities; gradients go through both."""
        both = getattr(distribution, "rsample_and_logp", None)
        if both is not None:
            actions, logp = both()
            return actions, logp
        actions = distribution.rsample()
        return actions, distribution.logp(actions)

    def critics(self, seen: object, actions: object, *, target: bool = False) -> dict[str, Any]:
        """What each critic expects of actions."""
        net = self.module.target_net if target else self.module.net
        names = [name for name in (Q_VALUES, TWIN_Q_VALUES) if name in net.graph.outputs]
        return dict(net({Columns.OBS: seen, Columns.ACTIONS: actions}, names))

    def least(self, seen: object, actions: object, *, target: bool = False) -> Any:
        """The smaller of what both critics expect."""
        values = [*self.critics(seen, actions, target=target).values()]
        return values[0] if len(values) == 1 else torch.minimum(*values)


def _repeat(seen: object, count: int) -> Any:
    """Each observation so many times, one after the other."""
    return tree.map_structure(lambda part: part.repeat_interleave(count, dim=0), seen)
