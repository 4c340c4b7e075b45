"""Learning from recorded data: MARWIL, BC and CQL."""

from __future__ import annotations

from typing import Any

from rllib_compat import registry
from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, drop_aloud, dropped, kept, lost
from rllib_compat.config.rules.offline import SOURCE, needs_old_readers, recorded
from rllib_compat.config.values import common as v
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "marwil_bc_cql"
IMITATION = registry.family("MARWIL")


def _beta(value: Any, context: Context) -> Outcome:
    if context.algorithm != "BC" or value == 0:
        return Outcome({"training.beta": value})
    return Outcome(
        verdict=Verdict.REFUSED,
        message="BC with a beta above 0 is MARWIL",
        severity=Severity.ERROR,
        hint="translate it with algorithm='MARWIL', or set beta to 0",
    )


def _lagrangian(key: str) -> Any:
    def convert(value: Any, context: Context) -> Outcome:
        if context.stack == "old":
            return Outcome({f"training.{key}": value}, Verdict.KEPT)
        active = value if key == "lagrangian" else context.get("lagrangian")
        return drop_aloud(active, context)

    return convert


RULES = (
    *(
        Rule(
            FAMILY,
            key,
            Verdict.CONVERTED,
            "recordings of sample batches in JSON files",
            target="offline_data.input_",
            convert=recorded,
            value=SOURCE,
            algorithms=(*IMITATION, "CQL", "CRR"),
            needs_old=needs_old_readers,
        )
        for key in ("input", "input_")
    ),
    Rule(
        FAMILY,
        "beta",
        Verdict.KEPT,
        target="training.beta",
        convert=_beta,
        value=v.AMOUNT,
        algorithms=IMITATION,
    ),
    *kept(
        FAMILY,
        "training",
        {
            v.NUMBER: "bc_logstd_coeff vf_coeff",
            v.AMOUNT: "moving_average_sqd_adv_norm_update_rate moving_average_sqd_adv_norm_start",
        },
        algorithms=IMITATION,
    ),
    *lost(
        FAMILY,
        "lambda lambda_",
        "the configs of offline algorithms have no argument for it",
        hint="set config.lambda_ after building the config",
        algorithms=IMITATION,
    ),
    *dropped(FAMILY, "burnin_len", "set by Ray from the model", algorithms=IMITATION),
    *dropped(
        FAMILY, "replay_buffer_size", "offline data is not replayed", algorithms=("MARWIL", "BC")
    ),
    *dropped(
        FAMILY,
        "_set_off_policy_estimation_methods",
        "an inner switch of Ray 2.x",
        algorithms=IMITATION,
    ),
    *dropped(FAMILY, "use_gae", "returns are always estimated", algorithms=("MARWIL", "BC")),
    Rule(
        FAMILY,
        "batch_size",
        Verdict.RENAMED,
        "renamed in Ray 0.6",
        target="training.train_batch_size_per_learner",
        old_target="training.train_batch_size",
        value=v.SOME,
        algorithms=("BC",),
    ),
    *kept(
        FAMILY,
        "training",
        {
            v.COUNT: "bc_iters",
            v.AMOUNT: "temperature min_q_weight",
            v.LENGTH: "num_actions",
            v.FLAG: "deterministic_backup",
        },
        algorithms=("CQL",),
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.DROPPED,
            "the Lagrangian form of CQL runs on the old API stack only",
            old_target=f"training.{key}",
            convert=_lagrangian(key),
            value=value,
            algorithms=("CQL",),
            hint="api_stack='old' keeps it",
        )
        for key, value in (("lagrangian", v.FLAG), ("lagrangian_thresh", v.NUMBER))
    ),
)
