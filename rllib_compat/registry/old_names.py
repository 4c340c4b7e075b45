"""Names of old modules, and where they are today: the one table of them.

Old imports (`legacy`), `agents` and `upgrade` read it in this order: a name in one module
(`NAMES`), a module of this package (`MODULES`), a name anywhere in RLlib (`IN_RLLIB`), the modules
of today that may have the names of an old one (`RENAMED_MODULES`; the one of the same name is
always among them), and last names that moved, whatever module had them (`MOVED`). What old Rays had
beyond that (`old_names.json`) can be imported, and raises when it is used.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

#: The package that user code gets old modules from.
OLD_PACKAGE = "rllib_compat.legacy.old"

_POLICIES = "rllib_compat.legacy.policies"
_DDPG = f"{_POLICIES}.ddpg"
_DQN = "ray.rllib.algorithms.dqn"
_OPERATORS = "rllib_compat.legacy.operators"
_RAY = "rllib_compat.legacy.ray_api"
_RLLIB = "rllib_compat.legacy.rllib_api"
_EXAMPLES = "ray.rllib.examples.envs.classes"
_EXAMPLE_ENVS = "rllib_compat.legacy.example_envs"
_MOCK_ENV = f"{OLD_PACKAGE}.ray.rllib.examples.env.mock_env"
_EXAMPLE_MODELS = "rllib_compat.legacy.example_models"
_EVOLUTION = "rllib_compat.legacy.evolution"
_BANDITS = f"{_POLICIES}.bandits"
_BUFFERS = "ray.rllib.utils.replay_buffers"
_MIXINS = f"{_POLICIES}.mixins"
_STOCK = "rllib_compat.trainer.stock_policies"
_SYNC = "rllib_compat.legacy.sync_clients"
_TORCH = "rllib_compat.legacy.torch_functions"
_TUNE_FUNCTIONS = "rllib_compat.legacy.tune_functions"
_UTILITIES = "rllib_compat.legacy.utilities"
_WRAPPERS = "rllib_compat.legacy.env_wrappers"
_MAKE_MULTI_AGENT = "rllib_compat.legacy.example_envs:make_multi_agent"

#: The packages of which user code gets old modules.
PACKAGES = ("ray", "gym")


def _inverted(homes: dict[str, str]) -> dict[str, str]:
    """Each word of a table's texts → its key."""
    return {name: home for home, names in homes.items() for name in names.split()}


#: A name in one old module → what it is, as `module:name`.
NAMES = {
    "ray.air.Checkpoint": "ray.train:Checkpoint",
    "ray.init": f"{_RAY}:init",
    "ray.rllib.policy.build_policy_class": f"{_POLICIES}.template:build_policy_class",
    "ray.rllib.policy.policy_template.build_policy_class": (
        f"{_POLICIES}.template:build_policy_class"
    ),
    "ray.rllib.utils.annotations.override": f"{_RLLIB}:override",
    "ray.rllib.utils.test_utils.check_learning_achieved": f"{_UTILITIES}:check_learning_achieved",
    "ray.rllib.contrib.alpha_zero.environments.cartpole.CartPole": (
        f"{OLD_PACKAGE}.ray.rllib.examples.env.cartpole_sparse_rewards:CartPoleSparseRewards"
    ),
    "ray.rllib.algorithms.algorithm_config.Space": "gymnasium:Space",
    **{
        f"ray.rllib.{folder}.{name}.{name}.Worker": f"{_EVOLUTION}:{name.upper()}Worker"
        for folder in ("agents", "algorithms")
        for name in ("ars", "es")
    },
    **{
        f"ray.rllib.algorithms.{name}.{name}_tf_policy.get_{name}_tf_policy": (
            f"{_OPERATORS}:get_tf_policy_of.{stem}"
        )
        for name, stem in (
            ("a3c", "A3C"),
            ("ddpg", "DDPG"),
            ("maml", "MAML"),
            ("pg", "PG"),
            ("simple_q", "SimpleQ"),
        )
    },
    "ray.tune.utils.mock.MOCK_REMOTE_DIR": f"{_TUNE_FUNCTIONS}:MOCK_REMOTE_DIR",
    "ray.tune.sample.function": "rllib_compat.tune:function",
    "ray.rllib.models.tf.noop.NoopModel": f"{_DDPG}:NoopModel",
    **{
        f"ray.rllib.agents.ppo.utils.{name}": f"{_UTILITIES}:{name}"
        for name in ("concatenate", "flatten", "shuffle")
    },
    **{
        f"ray.tune.syncer.{name}": f"{_SYNC}:{name}"
        for name in ("get_rsync_template_if_available", "log_sync_template", "wait_for_sync")
    },
    **{
        f"ray.tune.suggest.{place}": f"rllib_compat.tune.searchers:{name}"
        for module, name in (
            ("ax", "AxSearch"),
            ("bayesopt", "BayesOptSearch"),
            ("bohb", "TuneBOHB"),
            ("hyperopt", "HyperOptSearch"),
            ("nevergrad", "NevergradSearch"),
            ("zoopt", "ZOOptSearch"),
        )
        for place in (name, f"{module}.{name}")
    },
    "ray.rllib.contrib.bandits.exploration.UCB": (
        "ray.rllib.utils.exploration.upper_confidence_bound:UpperConfidenceBound"
    ),
    "ray.tune.trainable.Trainable": "rllib_compat.tune.trainables:Trainable",
    "ray.rllib.env.multi_agent_env.make_multi_agent": _MAKE_MULTI_AGENT,
    **{
        f"ray.rllib.{place}": f"{_OPERATORS}:get_policy_class_of.{stem}"
        for place, stem in (
            ("agents.a3c.a3c.get_policy_class", "A3C"),
            ("agents.ars.ars.get_policy_class", "ARS"),
            ("agents.ddpg.ddpg.get_policy_class", "DDPG"),
            ("agents.dqn.dqn.get_policy_class", "DQN"),
            ("agents.dqn.dqn.get_simple_policy_class", "SimpleQ"),
            ("agents.dqn.simple_q.get_policy_class", "SimpleQ"),
            ("agents.es.es.get_policy_class", "ES"),
            ("agents.cql.cql.get_policy_class", "CQL"),
            ("agents.dqn.r2d2.get_policy_class", "R2D2"),
            ("agents.impala.impala.choose_policy", "Impala"),
            ("agents.impala.impala.get_policy_class", "Impala"),
            ("agents.marwil.marwil.get_policy_class", "MARWIL"),
            ("agents.pg.pg.get_policy_class", "PG"),
            ("agents.ppo.appo.get_policy_class", "APPO"),
            ("agents.ppo.ppo.get_policy_class", "PPO"),
            ("agents.sac.sac.get_policy_class", "SAC"),
            ("algorithms.ars.ars.get_policy_class", "ARS"),
            ("algorithms.es.es.get_policy_class", "ES"),
        )
    },
    "ray.rllib.env.make_multi_agent": _MAKE_MULTI_AGENT,
    # Examples of Ray 0.8 and 1.0 import these.
    "ray.rllib.tests.test_rollout_worker.MockEnv": f"{_MOCK_ENV}:MockEnv",
    "ray.rllib.tests.test_rollout_worker.MockEnv2": f"{_MOCK_ENV}:MockEnv2",
}

#: An old module → ours, whose `__all__` comes before what today's Ray has there.
MODULES = _inverted(
    {
        "rllib_compat.gym": "gym gym.core",
        "rllib_compat.gym.discrete": "gym.envs.toy_text.discrete",
        "rllib_compat.gym.envs": "gym.envs",
        "rllib_compat.gym.error": "gym.error",
        "rllib_compat.gym.logger": "gym.logger",
        "rllib_compat.gym.registration": "gym.envs.registration",
        "rllib_compat.gym.env_checker": "gym.utils.env_checker",
        "rllib_compat.gym.seeding": "gym.utils.seeding",
        "rllib_compat.gym.spaces": "gym.spaces gym.spaces.dict gym.spaces.space",
        "rllib_compat.gym.vector": """
            gym.vector gym.vector.async_vector_env gym.vector.sync_vector_env gym.vector.vector_env
        """,
        "rllib_compat.gym.wrappers": "gym.wrappers",
        _WRAPPERS: """
            ray.rllib.env.atari_wrappers ray.rllib.env.wrappers.atari_wrappers
            ray.rllib.env.wrappers.recsim ray.rllib.env.wrappers.uncertainty_wrappers
        """,
        _EXAMPLE_ENVS: """
            ray.rllib.examples.env.correlated_actions_env
            ray.rllib.examples.env.curriculum_capable_env
            ray.rllib.examples.env.matrix_sequential_social_dilemma
            ray.rllib.examples.env.multi_agent ray.rllib.examples.env.rock_paper_scissors
            ray.rllib.examples.env.simple_corridor
        """,
        _EXAMPLE_MODELS: """
            ray.rllib.examples.models.batch_norm_model ray.rllib.examples.models.rnn_model
            ray.rllib.examples.models.trajectory_view_utilizing_models
            ray.rllib.examples.policy.rock_paper_scissors_dummies
        """,
        _RAY: "ray._private.utils ray.air ray.air.config ray.utils",
        "rllib_compat.legacy.rllib_scripts": "ray.rllib.common ray.rllib.scripts",
        "rllib_compat.legacy.rllib_train": "ray.rllib.train",
        "rllib_compat.legacy.rollout": "ray.rllib.evaluate ray.rllib.rollout",
        _SYNC: "ray.tune.sync_client ray.tune.utils.mock",
        "rllib_compat.legacy.track": "ray.tune.track ray.tune.track.session",
        "rllib_compat.legacy.trial_mixins": """
            ray.tune.integration.mlflow ray.tune.integration.mxnet ray.tune.integration.wandb
        """,
        _TUNE_FUNCTIONS: """
            ray.tune.cluster_info ray.tune.sample ray.tune.search.sample ray.tune.trial
            ray.tune.utils ray.tune.utils.util ray.tune.utils.visual_utils
        """,
        "rllib_compat.tune": "ray.tune ray.tune.tune",
        "rllib_compat.tune.functions": "ray.tune.session ray.tune.trainable.session",
        "rllib_compat.tune.loggers": """
            ray.tune.logger ray.tune.logger.csv ray.tune.logger.json ray.tune.logger.logger
            ray.tune.logger.noop ray.tune.logger.tensorboardx ray.tune.logger.unified
        """,
        "rllib_compat.tune.registry": "ray.tune.registry",
        "rllib_compat.tune.schedulers": """
            ray.tune.schedulers ray.tune.schedulers.async_hyperband ray.tune.schedulers.hyperband
            ray.tune.schedulers.median_stopping_rule ray.tune.schedulers.pbt
        """,
    }
)

#: A name → what it is in every module of RLlib that has it.
IN_RLLIB = {
    "ModelCatalog": "rllib_compat.legacy.rllib_api:ModelCatalog",
    "ParallelPettingZooEnv": "rllib_compat.legacy.pettingzoo_env:ParallelPettingZooEnv",
    "PettingZooEnv": "rllib_compat.legacy.pettingzoo_env:PettingZooEnv",
    "try_import_tf": "rllib_compat.legacy.rllib_api:try_import_tf",
    "Agent": "rllib_compat.trainer.trainer:Trainer",
    "Algorithm": "rllib_compat.legacy.algorithm:Algorithm",
    "Policy": "rllib_compat.legacy.policy:Policy",
    "DefaultCallbacks": "rllib_compat.runtime.callbacks:DefaultCallbacks",
    "Episode": "rllib_compat.runtime.episodes:LegacyEpisode",
    "MultiAgentEpisode": "rllib_compat.runtime.episodes:LegacyEpisode",
    "MultiAgentEnv": f"{_RLLIB}:MultiAgentEnv",
    "MultiCallbacks": "rllib_compat.runtime.callbacks:MultiCallbacks",
    "RolloutWorker": "rllib_compat.trainer.rollout_worker:RolloutWorker",
    "SampleBatch": f"{_RLLIB}:SampleBatch",
    "Trainer": "rllib_compat.trainer.trainer:Trainer",
    "collect_episodes": "rllib_compat.runtime.evaluation:collect_episodes",
    "collect_metrics": "rllib_compat.trainer.rollout_worker:collect_metrics",
    "WorkerSet": "rllib_compat.trainer.rollout_worker:WorkerSet",
    "build_trainer": "rllib_compat.trainer.classes:build_trainer",
    "get_agent_class": "rllib_compat.trainer.classes:get_trainer_class",
    "get_algorithm_class": "rllib_compat.trainer.classes:get_trainer_class",
    "get_trainer_class": "rllib_compat.trainer.classes:get_trainer_class",
    "summarize_episodes": "rllib_compat.runtime.evaluation:summarize_episodes",
    "with_base_config": "rllib_compat.trainer.defaults:with_base_config",
    "with_common_config": "rllib_compat.trainer.defaults:with_common_config",
}

#: Names of `IN_RLLIB` that Ray still has where they stood, and that take other arguments there.
CHANGED = frozenset({"RolloutWorker", "collect_episodes", "collect_metrics", "summarize_episodes"})

#: What Ray itself has for a name of `IN_RLLIB`, for code that is to do without this package.
NATIVE = {
    "Agent": "ray.rllib.algorithms.algorithm:Algorithm",
    "DefaultCallbacks": "ray.rllib.callbacks.callbacks:RLlibCallback",
    "MultiAgentEpisode": "ray.rllib.env.multi_agent_episode:MultiAgentEpisode",
    "Trainer": "ray.rllib.algorithms.algorithm:Algorithm",
    "get_agent_class": "ray.tune.registry:get_trainable_cls",
    "get_algorithm_class": "ray.tune.registry:get_trainable_cls",
    "get_trainer_class": "ray.tune.registry:get_trainable_cls",
}

#: Where people's code imports what is private in `IN_RLLIB`.
PUBLIC = {
    "rllib_compat.runtime.callbacks:DefaultCallbacks": "rllib_compat:DefaultCallbacks",
    "rllib_compat.trainer.classes:build_trainer": (
        "rllib_compat.agents.trainer_template:build_trainer"
    ),
    "rllib_compat.trainer.classes:get_trainer_class": (
        "rllib_compat.agents.registry:get_agent_class"
    ),
    "rllib_compat.trainer.defaults:with_base_config": (
        "rllib_compat.agents.trainer:with_base_config"
    ),
    "rllib_compat.trainer.defaults:with_common_config": (
        "rllib_compat.agents.trainer:with_common_config"
    ),
    "rllib_compat.trainer.trainer:Trainer": "rllib_compat:Trainer",
}

#: An old module or package → one that may have its names today.
RENAMED_MODULES = (
    ("gym", "gymnasium"),
    ("gym.envs", "rllib_compat.gym.envs"),
    ("gym.vector.utils.numpy_utils", "gymnasium.vector.utils"),
    ("gym.vector.utils.spaces", "gymnasium.vector.utils"),
    ("gym.wrappers", "rllib_compat.gym.wrappers"),
    ("ray.air.checkpoint", "ray.train"),
    ("ray.rllib.agents", "ray.rllib.algorithms"),
    ("ray.rllib.agents", "rllib_compat.agents"),
    ("ray.rllib.agents.pg.default_config", "rllib_compat.agents.pg"),
    ("ray.rllib.agents.dqn.learner_thread", "ray.rllib.execution.learner_thread"),
    ("ray.rllib.agents.impala.vtrace_tf_policy", "ray.rllib.algorithms.impala.impala_tf_policy"),
    ("ray.rllib.algorithms.dqn.learner_thread", "ray.rllib.execution.learner_thread"),
    *(
        (f"ray.rllib.{place}", "rllib_compat.legacy.policies.alpha_zero")
        for place in (
            "algorithms.alpha_zero.alpha_zero",
            "algorithms.alpha_zero.mcts",
            "algorithms.alpha_zero.models.custom_torch_models",
            "algorithms.alpha_zero.ranked_rewards",
            "contrib.alpha_zero.core.alpha_zero_trainer",
            "contrib.alpha_zero.core.mcts",
            "contrib.alpha_zero.core.ranked_rewards",
            "contrib.alpha_zero.models.custom_torch_models",
        )
    ),
    ("ray.rllib.contrib.bandits.agents.policy", _BANDITS),
    ("ray.rllib.contrib.bandits.envs", f"{_EXAMPLES}.multi_agent.bandit_envs_discrete"),
    ("ray.rllib.contrib.bandits.envs", f"{_EXAMPLES}.multi_agent.bandit_envs_recommender_system"),
    ("ray.rllib.contrib.bandits.envs.discrete", f"{_EXAMPLES}.multi_agent.bandit_envs_discrete"),
    (
        "ray.rllib.contrib.bandits.envs.parametric",
        f"{_EXAMPLES}.multi_agent.bandit_envs_recommender_system",
    ),
    ("ray.rllib.contrib.bandits.exploration", "ray.rllib.utils.exploration.thompson_sampling"),
    ("ray.rllib.contrib.bandits.models.linear_regression", _BANDITS),
    ("ray.rllib.core.rl_module.marl_module", "ray.rllib.core.rl_module.multi_rl_module"),
    ("ray.rllib.env.apis.task_settable_env", _RLLIB),
    ("ray.rllib.env.atari_wrappers", "ray.rllib.env.wrappers.atari_wrappers"),
    ("ray.rllib.env.constants", "ray.rllib.env.wrappers.group_agents_wrapper"),
    ("ray.rllib.env.dm_control_wrapper", "ray.rllib.env.wrappers.dm_control_wrapper"),
    ("ray.rllib.env.dm_env_wrapper", "ray.rllib.env.wrappers.dm_env_wrapper"),
    ("ray.rllib.env.group_agents_wrapper", "ray.rllib.env.wrappers.group_agents_wrapper"),
    ("ray.rllib.env.meta_env", _RLLIB),
    ("ray.rllib.env.pettingzoo_env", "ray.rllib.env.wrappers.pettingzoo_env"),
    ("ray.rllib.evaluation.episode", "ray.rllib.evaluation.episode_v2"),
    ("ray.rllib.evaluation.postprocessing", _RLLIB),
    ("ray.rllib.evaluation.rollout_worker", _RLLIB),
    ("ray.rllib.evaluation.worker_set", "ray.rllib.env.env_runner_group"),
    ("ray.rllib.examples.env", "ray.rllib.examples.envs.classes"),
    ("ray.rllib.examples.env", "ray.rllib.examples.envs.classes.multi_agent"),
    ("ray.rllib.examples.models", "ray.rllib.examples._old_api_stack.models"),
    ("ray.rllib.examples.policy", "ray.rllib.examples._old_api_stack.policy"),
    ("ray.rllib.execution", "rllib_compat.execution"),
    ("ray.rllib.optimizers", "rllib_compat.execution.optimizers"),
    ("ray.rllib.execution.buffers", "ray.rllib.utils.replay_buffers"),
    (
        "ray.rllib.execution.buffers.multi_agent_replay_buffer",
        "rllib_compat.execution.replay_buffer",
    ),
    ("ray.rllib.execution.replay_buffer", "ray.rllib.utils.replay_buffers"),
    ("ray.rllib.models.misc", "ray.rllib.models.tf.misc"),
    ("ray.rllib.models.model", "ray.rllib.models.modelv2"),
    ("ray.rllib.models.tf.fcnet_v1", "ray.rllib.models.tf.fcnet"),
    ("ray.rllib.models.tf.fcnet_v2", "ray.rllib.models.tf.fcnet"),
    ("ray.rllib.models.tf.visionnet_v1", "ray.rllib.models.tf.visionnet"),
    ("ray.rllib.models.tf.visionnet_v2", "ray.rllib.models.tf.visionnet"),
    ("ray.rllib.offline.off_policy_estimator", "ray.rllib.offline.estimators.off_policy_estimator"),
    ("ray.rllib.optimizers.segment_tree", "ray.rllib.execution.segment_tree"),
    ("ray.rllib.policy.policy_graph", "ray.rllib.policy.policy"),
    ("ray.rllib.policy.tf_policy", "ray.rllib.policy.torch_mixins"),
    ("ray.rllib.policy.tf_policy_graph", "ray.rllib.policy.tf_policy"),
    ("ray.rllib.policy.torch_policy", "ray.rllib.policy.torch_mixins"),
    ("ray.rllib.policy.torch_policy_template", "rllib_compat.legacy.policies.template"),
    ("ray.rllib.utils", "ray.rllib.utils.framework"),
    ("ray.rllib.utils.debug", "ray.rllib.utils.debug.deterministic"),
    ("ray.rllib.utils.deprecation", _RLLIB),
    ("ray.rllib.utils.explained_variance", "ray.rllib.utils.torch_utils"),
    ("ray.rllib.utils.policy_client", "ray.rllib.env.policy_client"),
    ("ray.rllib.utils.space_utils", "ray.rllib.utils.spaces.space_utils"),
    ("ray.rllib.utils.tf_ops", "ray.rllib.utils.tf_utils"),
    ("ray.rllib.utils.torch_ops", "ray.rllib.utils.torch_utils"),
    ("ray.tune.checkpoint_manager", "ray.train._internal.checkpoint_manager"),
    ("ray.tune.commands", "ray.tune.cli.commands"),
    ("ray.tune.config_parser", "ray.tune.experiment.config_parser"),
    ("ray.tune.execution.ray_trial_executor", "ray.tune.execution.class_cache"),
    ("ray.tune.execution.trial_runner", "ray.tune.execution.tune_controller"),
    ("ray.tune.function_runner", "ray.tune.trainable.function_trainable"),
    (
        "ray.tune.insufficient_resources_manager",
        "ray.tune.execution.insufficient_resources_manager",
    ),
    ("ray.tune.integration", "ray.air.integrations"),
    ("ray.tune.ray_trial_executor", "ray.tune.execution.class_cache"),
    ("ray.tune.sample", "ray.tune.search.sample"),
    ("ray.tune.scripts", "ray.tune.cli.scripts"),
    ("ray.tune.scripts", "ray.tune.cli.commands"),
    ("ray.tune.suggest", "ray.tune.search"),
    ("ray.tune.suggest.ax", "ray.tune.search.ax.ax_search"),
    ("ray.tune.suggest.bayesopt", "ray.tune.search.bayesopt.bayesopt_search"),
    ("ray.tune.suggest.bohb", "ray.tune.search.bohb.bohb_search"),
    ("ray.tune.suggest.hebo", "ray.tune.search.hebo.hebo_search"),
    ("ray.tune.suggest.hyperopt", "ray.tune.search.hyperopt.hyperopt_search"),
    ("ray.tune.suggest.nevergrad", "ray.tune.search.nevergrad.nevergrad_search"),
    ("ray.tune.suggest.optuna", "ray.tune.search.optuna.optuna_search"),
    ("ray.tune.suggest.search", "ray.tune.search.search_algorithm"),
    ("ray.tune.suggest.suggestion", "ray.tune.search"),
    ("ray.tune.suggest.suggestion", "ray.tune.search.searcher"),
    ("ray.tune.suggest.util", "ray.tune.search.util"),
    ("ray.tune.suggest.zoopt", "ray.tune.search.zoopt.zoopt_search"),
    ("ray.tune.syncer", "ray.train._internal.syncer"),
    ("ray.tune.trial", "ray.tune.experiment.trial"),
    ("ray.tune.trial_runner", "ray.tune.execution.tune_controller"),
    ("ray.tune.trial_runner", "ray.tune.execution.experiment_state"),
    ("ray.tune.util", "ray.tune.utils"),
    ("ray.tune.utils.placement_groups", "ray.tune.execution.placement_groups"),
    ("ray.tune.utils.trainable", "ray.tune.trainable.util"),
)

#: The last part of a module, below `agents` or `algorithms` → ours with the same names.
IN_ALGORITHMS = _inverted(
    {
        f"{_POLICIES}.{stem}": f"{stem}_policy {stem}_tf_policy {stem}_torch_policy"
        for stem in ("a3c", "appo", "ddpg", "marwil", "pg", "ppo", "r2d2", "simple_q", "vtrace")
    }
) | _inverted(
    {
        _EVOLUTION: "ars.ars ars.optimizers ars.utils es.es es.optimizers es.utils",
        _BANDITS: "bandit_tf_model bandit_tf_policy bandit_torch_model bandit_torch_policy",
        _DDPG: """
            crr.torch crr_torch_model ddpg.OBSOLETED_ddpg_policy ddpg.ddpg_tf_model
            ddpg.ddpg_torch_model ddpg.noop_model ddpg.utils torch.crr_torch_model
        """,
        f"{_POLICIES}.dreamer": """
            dreamer.dreamer dreamer.dreamer_model dreamer.utils dreamer_torch_policy
        """,
        f"{_POLICIES}.es": "es.es_tf_policy es.es_torch_policy",
        f"{_POLICIES}.meta": """
            maml.maml maml_tf_policy maml_torch_policy mbmpo.model_ensemble mbmpo.utils
        """,
        f"{_POLICIES}.pg": "pg pg.utils",
        f"{_POLICIES}.qmix": "qmix.mixers qmix.model qmix.qmix_policy",
        f"{_POLICIES}.simple_q": "simple_q.utils",
        f"{_POLICIES}.slateq": """
            slateq.slateq slateq_tf_model slateq_tf_policy slateq_torch_model slateq_torch_policy
        """,
    }
)

#: A current module → names that it has, whatever modules had them.
_HOMES = {
    "ray._private.dict": "merge_dicts",
    f"{_DQN}.distributional_q_tf_model": "DistributionalQTFModel",
    f"{_DQN}.dqn_torch_model": "DQNTorchModel",
    "ray.rllib.env.policy_client": "PolicyClient",
    "ray.rllib.evaluation.metrics": "RolloutMetrics",
    "ray.rllib.execution.learner_thread": "LearnerThread",
    "ray.rllib.execution.minibatch_buffer": "MinibatchBuffer",
    "ray.rllib.execution.replay_ops": "SimpleReplayBuffer",
    "ray.rllib.execution.segment_tree": "MinSegmentTree SegmentTree SumSegmentTree",
    "ray.rllib.models.modelv2": "restore_original_dimensions",
    "ray.rllib.offline.estimators.off_policy_estimator": "OffPolicyEstimator",
    "ray.rllib.policy.sample_batch": "MultiAgentBatch SampleBatch",
    "ray.rllib.policy.torch_mixins": "EntropyCoeffSchedule KLCoeffMixin LearningRateSchedule",
    "ray.rllib.utils.framework": "try_import_torch",
    "ray.rllib.utils.metrics.window_stat": "WindowStat",
    "ray.rllib.utils.numpy": "one_hot",
    _BUFFERS: "MultiAgentReplayBuffer PrioritizedReplayBuffer ReplayBuffer",
    "ray.rllib.utils.spaces.simplex": "Simplex",
    "ray.rllib.utils.spaces.space_utils": "clip_action",
    "ray.rllib.utils.tf_utils": "make_tf_callable",
    "ray.rllib.utils.torch_utils": "explained_variance",
    "ray.rllib.utils.typing": "Optimizer ParamRef SampleBatchType TensorType",
    "ray.tune": "PlacementGroupFactory",
    "ray.tune.logger.tensorboardx": "VALID_SUMMARY_TYPES",
    "rllib_compat.execution.optimizers": """
        AsyncGradientsOptimizer LocalMultiGPUOptimizer PolicyOptimizer SyncBatchReplayOptimizer
        SyncSamplesOptimizer collect_samples make_divisible_by
    """,
    "rllib_compat.legacy.callbacks": "MemoryTrackingCallbacks RE3UpdateCallbacks",
    _OPERATORS: """
        AsyncRequestsManager BroadcastUpdateLearnerWeights LeagueBuilder NoLeagueBuilder ReplayActor
        UpdateKL UpdateTargetAndKL UpdateWorkerWeights asynchronous_parallel_requests
        gather_experiences_directly gather_experiences_tree_aggregation initialize_target update_kl
        update_target_and_kl wait_asynchronous_requests warn_about_bad_reward_scales
    """,
    _DDPG: "TorchNoopModel",
    f"{_POLICIES}.maddpg": """
        MADDPGPostprocessing add_trainer_metrics set_global_timestep
    """,
    _MIXINS: "TargetNetworkMixin ValueNetworkMixin",
    f"{_POLICIES}.template": "build_torch_policy",
    _RAY: "DEFAULT_RESULTS_DIR",
    _RLLIB: "DEPRECATED_VALUE Deprecated deprecation_warning discount override",
    "rllib_compat.legacy.sync_clients": "CloudSyncer get_cloud_syncer set_sync_periods",
    _TORCH: "ConvTranspose2DStack Swish atanh convert_to_non_torch_type minimize_and_clip",
    _TUNE_FUNCTIONS: """
        FuncCheckpointUtil PlacementGroupUtil QueueItem TrainableUtil TuneGetNextExecutorEventError
        delete_on_node evenly_distribute_cpus_gpus evenly_distribute_cpus_gpus_distributed
        get_tune_pg_prefix memory_debug_str noop_logger_creator
    """,
    _UTILITIES: """
        CONTRIBUTED_ALGORITHMS OffPolicyEstimate RLLIB_DEBUG_EXPLICIT_FREE ResetOnExceptionWrapper
        TooManyResetAttemptsException TupleActions UsageTrackingDict aligned_array averaged
        check_base_env check_env check_framework check_gym_environments check_multi_agent
        check_old_gym_env check_vector_env concat_aligned convert_old_gym_space_to_gymnasium_space
        create_colocated extract_stats framework_iterator get_device get_resource_bundles
        handle_remote_call_result_errors moved_function ray_get_and_free renamed_agent renamed_class
        renamed_function to_float_array to_float_np_array try_import_gymnasium_and_gym
        try_import_tree
    """,
    "rllib_compat.runtime.external.server": "PolicyServer PolicyServerInput",
    "rllib_compat.tune.analysis": "TrialCheckpoint",
    "rllib_compat.tune.functions": "StatusReporter",
}

#: A name → where it is today, whatever module had it.
MOVED = {name: f"{home}:{name}" for name, home in _inverted(_HOMES).items()} | {
    "Analysis": "rllib_compat.tune:Analysis",
    "AsyncPPOTFPolicy": f"{_STOCK}:APPOTFPolicy",
    "AsyncPPOTorchPolicy": f"{_STOCK}:APPOTorchPolicy",
    "Categorical": "ray.rllib.models.torch.torch_action_dist:TorchCategorical",
    "DurableTrainable": "rllib_compat.tune.trainables:Trainable",
    "EvaluatorInterface": "rllib_compat.trainer.rollout_worker:RolloutWorker",
    "FunctionRunner": "ray.tune.trainable.function_trainable:FunctionTrainable",
    "GenericOffPolicyTrainer": "rllib_compat.agents.dqn:SimpleQTrainer",
    "GradientType": "builtins:dict",
    "ModuleID": "builtins:str",
    "MultiAgentRLModule": "ray.rllib.core.rl_module.multi_rl_module:MultiRLModule",
    "MultiAgentRLModuleSpec": "ray.rllib.core.rl_module.multi_rl_module:MultiRLModuleSpec",
    "ParamDictType": "ray.rllib.utils.typing:ParamDict",
    "ParamType": "ray.rllib.utils.typing:Param",
    "PartialTrainerConfigDict": "builtins:dict",
    "PolicyEvaluator": "rllib_compat.trainer.rollout_worker:RolloutWorker",
    "PolicyGraph": "ray.rllib.policy.policy:Policy",
    "RecurrentTFModelV2": "ray.rllib.models.tf.recurrent_net:RecurrentNetwork",
    "RecurrentTorchModel": "ray.rllib.models.torch.recurrent_net:RecurrentNetwork",
    "RemoteVectorEnv": "ray.rllib.env.remote_base_env:RemoteBaseEnv",
    "ReservoirBuffer": f"{_BUFFERS}.reservoir_replay_buffer:ReservoirReplayBuffer",
    "SingleAgentRLModuleSpec": "ray.rllib.core.rl_module.rl_module:RLModuleSpec",
    "TFMultiGPULearner": "ray.rllib.execution.multi_gpu_learner_thread:MultiGPULearnerThread",
    "TFPolicyGraph": "ray.rllib.policy.tf_policy:TFPolicy",
    "TimerStat": "ray.util.timer:_Timer",
    "TorchPolicyGraph": "ray.rllib.policy.torch_policy:TorchPolicy",
    "TrainerConfigDict": "builtins:dict",
    "VTraceTFPolicy": f"{_STOCK}:ImpalaTFPolicy",
    "VTraceTorchPolicy": f"{_STOCK}:ImpalaTorchPolicy",
    "durable": f"{_UTILITIES}:renamed_agent",
    "warn_replay_buffer_size": f"{_BUFFERS}.replay_buffer:warn_replay_capacity",
}

_GUIDE = 'see the guide: "What an old import gives"'
_LEARNER = "subclass the algorithm's Learner, override compute_loss_for_module(), and set "
_LEARNER += "config.learners(learner_class=…)"
_MODEL = "write a TorchModelV2 as custom_model, or an RLModule"
_EXPLORATION = "set exploration_config['type'] to a subclass of "
_EXPLORATION += "ray.rllib.utils.exploration.Exploration"
_OLD_RAY = "name the Ray that the code was written for, by its wheel or folder: "
_OLD_RAY += "`rllib-compat run --old-ray PATH …`, or rllib_compat.activate(old_ray=PATH)"
_NO_SPECS = "RLModules declare no specs, and data is plain dicts; leave it out"
_STEP = "subclass the algorithm and override training_step()"
_CONTRIB = "Ray's folder rllib_contrib had it until 2.9"
_UNITY = (
    "mlagents_envs has a wrapper for PettingZoo; ray.rllib.env.wrappers.pettingzoo_env takes it"
)
_NO_SYNCING = "nodes need no syncing: give tune.run a storage_path that all of them see"
_CALLBACK = "Tune runs trials in a TuneController: write a ray.tune.Callback"
_CALLBACK_OF_TRIALS = "Tune starts trials itself: write a ray.tune.Callback"
_MAML = "meta-learning has left Ray; write it with a DifferentiableLearner"
_MBMPO = f"learned models have left Ray; {_CONTRIB}"
_SLATEQ = f"recommenders have left Ray; {_CONTRIB}"
_LEAGUE = "train PPO policies against frozen ones, with rllib_compat.league"
_RNNSAC = "RNNSAC trains with an RLModule of yours, or a recurrent ModelV2 as custom_model"
_DREAMER = "DreamerV3: ray.rllib.algorithms.dreamerv3"
_SIGOPT = "Ray has it no more; search with Optuna (ray.tune.search.optuna)"
_SKOPT = "search with BayesOpt or Optuna (ray.tune.search)"
_DRAGONFLY = "search with BayesOpt or HEBO (ray.tune.search)"
_OLD_GYM = "copy its file from gym 0.17.3 into your project; what it imports of gym is there"

#: What an old name begins with → where it went; the longest that fits counts.
REMOVED = {
    "gym": "copy what you need of it from the gym that had it",
    "gym.envs.algorithmic": _OLD_GYM,
    "gym.envs.atari": "Atari games are in the package ale-py, and `gym.make` finds them",
    "gym.envs.classic_control.rendering": "pyglet's viewer left gym with 0.22; draw with pygame, "
    "matplotlib or numpy, and return the picture from `render`",
    "gym.envs.mujoco": "`gym.make` finds the next version that gymnasium has of an environment; "
    "those of mujoco-py are in the package gymnasium-robotics",
    "gym.envs.robotics": "they are in the package gymnasium-robotics",
    "gym.envs.toy_text": _OLD_GYM,
    "gym.envs.unittest": _OLD_GYM,
    "gym.spaces.utils": "`gym.spaces.flatten`, `flatdim` and `unflatten` do it for all spaces",
    "gym.wrappers.compatibility": "`rllib_compat.gym.OldApi` and the wrappers here do it",
    "gym.wrappers.monitor": "`gym.wrappers.Monitor` counts episodes in memory; it writes no files",
    "gym.wrappers.monitoring": "`gymnasium.wrappers.RecordVideo` records",
    "ray.rllib": _GUIDE,
    "ray.rllib.agents": _GUIDE,
    "ray.rllib.agents.alpha_star": _LEAGUE,
    "ray.rllib.agents.dreamer": _DREAMER,
    "ray.rllib.agents.dyna": "learned models have left Ray; copy what you need into your project",
    "ray.rllib.agents.maml": _MAML,
    "ray.rllib.agents.mbmpo": _MBMPO,
    "ray.rllib.agents.sac.rnnsac": _RNNSAC,
    "ray.rllib.agents.sac.rnnsac_torch_model": _RNNSAC,
    "ray.rllib.agents.sac.rnnsac_torch_policy": _RNNSAC,
    "ray.rllib.agents.slateq": _SLATEQ,
    "ray.rllib.algorithms.alpha_star": _LEAGUE,
    "ray.rllib.algorithms.alpha_zero": f"tree search has left Ray; {_CONTRIB}",
    "ray.rllib.algorithms.dreamer": _DREAMER,
    "ray.rllib.algorithms.maml": _MAML,
    "ray.rllib.algorithms.mbmpo": _MBMPO,
    "ray.rllib.algorithms.sac.rnnsac_torch_model": _RNNSAC,
    "ray.rllib.algorithms.sac.rnnsac_torch_policy": _RNNSAC,
    "ray.rllib.algorithms.slateq": _SLATEQ,
    "ray.rllib.contrib": "contributed algorithms have left Ray; see its folder rllib_contrib",
    "ray.rllib.core.rl_module.encoder": "encoders are ray.rllib.core.models.configs today",
    "ray.rllib.core.rl_trainer": "it is ray.rllib.core.learner today: TorchLearner, LearnerGroup",
    "ray.rllib.env.wrappers.recsim": "copy the wrapper from the Ray that had it",
    "ray.rllib.env.wrappers.unity3d_env": _UNITY,
    "ray.rllib.examples": "copy the file from the Ray that had it into your project",
    "ray.rllib.examples.env": _OLD_RAY,
    "ray.rllib.examples.models": _OLD_RAY,
    "ray.rllib.examples.policy": _OLD_RAY,
    "ray.rllib.execution": _STEP,
    "ray.rllib.models.jax": "there are no JAX models; write a TorchModelV2 or an RLModule",
    "ray.rllib.models.model": "these models were TensorFlow's; write a TorchModelV2 or an RLModule",
    "ray.rllib.models.specs": _NO_SPECS,
    "ray.rllib.optimizers": _STEP,
    "ray.rllib.policy": _LEARNER,
    "ray.rllib.rollout": "rllib-compat evaluate",
    "ray.rllib.train": "rllib-compat train",
    "ray.rllib.utils.nested_dict": _NO_SPECS,
    "ray.tune": "Tune has it elsewhere or not at all: see the documentation of ray.tune.Tuner",
    "ray.tune.automlboard": "its board has left Ray; see TensorBoard, or `rllib-compat plot`",
    "ray.tune.execution": _CALLBACK,
    "ray.tune.integration.docker": _NO_SYNCING,
    "ray.tune.integration.horovod": "start a ray.train trainer in the trial",
    "ray.tune.integration.kubernetes": _NO_SYNCING,
    "ray.tune.integration.mlflow": "call ray.air.integrations.mlflow.setup_mlflow in it",
    "ray.tune.integration.tensorflow": "start a ray.train.tensorflow.TensorflowTrainer in it",
    "ray.tune.integration.torch": "start a ray.train.torch.TorchTrainer in the trial",
    "ray.tune.integration.wandb": "call ray.air.integrations.wandb.setup_wandb in the trial",
    "ray.tune.ray_trial_executor": _CALLBACK_OF_TRIALS,
    "ray.tune.search.dragonfly": _DRAGONFLY,
    "ray.tune.search.sigopt": _SIGOPT,
    "ray.tune.search.skopt": _SKOPT,
    "ray.tune.sklearn": "search over your estimator with ray.tune.Tuner",
    "ray.tune.suggest.dragonfly": _DRAGONFLY,
    "ray.tune.suggest.sigopt": _SIGOPT,
    "ray.tune.suggest.skopt": _SKOPT,
    "ray.tune.sync_client": _NO_SYNCING,
    "ray.tune.syncer": _NO_SYNCING,
    "ray.tune.trial_executor": _CALLBACK_OF_TRIALS,
    "ray.tune.trial_runner": _CALLBACK,
    "ray.tune.web_server": "there is no server: look at a running experiment in Ray's dashboard",
}

#: How a name below `agents` or `algorithms` reads, unless a row above is about it → what to do.
_KINDS = {
    "^(F|[a-z]+_import|division|nest|print_function|tfp?|tree)$": "import it from its own package",
    "exploration|^sample_action|^simple_sample|ActionNetwork": _EXPLORATION,
    "RLModule|Catalog|Module(Base|Config)": "subclass the RLModule that the algorithm has now",
    "Learner|HPs$|Hyperparameters": _LEARNER,
    "CONFIG|config": "a trainer checks its config itself, and has get_default_config()",
    "execution_plan|optimizer$|^(make|defer|sync|update|record|after_t|before|post_p)": _STEP,
    "workers|Worker|Iteration$|MetaUpdate|PROPERTIES|replay_buffer|ReplayBuffer|Resource": _STEP,
    "^(build_.*(model|networks?)|make_model.*)$|(Network|Model)$|^get_(initial|dist)": _MODEL,
    "[Ll]oss|grad|stats|mixin|Mixin|[Pp]ostprocess|logits|log_(prob|rhos|likelihood)": _LEARNER,
    "Polic|optimizer|VTrace|apply_op|init|view_requirements|validate_|build_|weights": _LEARNER,
}

#: A name that numpy 1.24 – 2.0 removed → what it was, or today's name of it.
NUMPY: dict[str, Any] = {
    "Inf": "inf",
    "Infinity": "inf",
    "NAN": "nan",
    "NINF": float("-inf"),
    "NZERO": -0.0,
    "NaN": "nan",
    "PINF": "inf",
    "PZERO": 0.0,
    "alltrue": "all",
    "bool": bool,
    "bool8": "bool_",
    "cfloat": "complex128",
    "complex": complex,
    "complex_": "complex128",
    "cumproduct": "cumprod",
    "float": float,
    "float_": "float64",
    "in1d": "isin",
    "infty": "inf",
    "int": int,
    "int0": "intp",
    "long": int,
    "mat": "asmatrix",
    "object": object,
    "object0": "object_",
    "product": "prod",
    "round_": "round",
    "row_stack": "vstack",
    "singlecomplex": "complex64",
    "sometrue": "any",
    "str": str,
    "string_": "bytes_",
    "trapz": "trapezoid",
    "uint0": "uintp",
    "unicode": str,
    "unicode_": "str_",
}


def advice(name: str) -> str:
    """Where something went that can't exist any more, or what to do instead."""
    fits = [start for start in REMOVED if name == start or name.startswith(f"{start}.")]
    found = REMOVED[max(fits, key=len)] if fits else "there is nothing in its place"
    if found not in (_GUIDE, REMOVED["ray.rllib.contrib"]):
        return found
    last = name.rpartition(".")[2]
    return next((row for kind, row in _KINDS.items() if re.search(kind, last)), found)


def candidates(module: str) -> list[str]:
    """The current modules that may have the names of an old one, this package's first."""
    found = [module]
    for old, new in RENAMED_MODULES:
        if module == old or module.startswith(f"{old}."):
            found.append(new + module.removeprefix(old))
    if module.startswith("gym.wrappers."):  # a file for each, and all names in the package
        found.append("rllib_compat.gym.wrappers")
    below = module.partition(".algorithms." if ".algorithms." in module else ".agents.")[2]
    parts = below.split(".")
    found += [
        IN_ALGORITHMS[end] for end in (".".join(parts[-2:]), parts[-1]) if end in IN_ALGORITHMS
    ]
    return sorted(found, key=lambda name: not name.startswith("rllib_compat"))


@cache
def constants() -> dict[str, Any]:
    """Constants of old modules that no Ray has today, with their values."""
    path = Path(__file__).with_name("old_constants.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@cache
def _table() -> dict[str, dict[str, str]]:
    path = Path(__file__).with_suffix(".json")
    rows: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


@cache
def modules() -> frozenset[str]:
    """The modules of `ray.rllib` and `ray.tune` in old Rays, and the packages that they are in."""
    found: set[str] = set()
    for name in _table():
        parts = name.split(".")
        found.update(".".join(parts[:n]) for n in range(1, len(parts) + 1))
    return frozenset(found)


@cache
def names(module: str) -> dict[str, str]:
    """The names of an old module, each with the last Ray that had it there."""
    rows = _table().get(module, {})
    return {name: release for release, found in rows.items() for name in found.split()}
