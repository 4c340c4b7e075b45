"""What we touch of Ray's classes, as protocols: a type checker can't follow Ray itself.

A member is here because the package uses it, and as it is in all supported Rays. What only some of
them have is looked for (`hasattr`) in the module that knows about the difference. `… | Any` marks
what is None in some algorithms, which its callers know about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch
    from gymnasium import Space

#: A value, or values by names: what modules and learners take and give.
State = dict[str, Any]


class AlgorithmConfig(Protocol):
    """A config; which settings and methods there are depends on the algorithm and the Ray."""

    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: object) -> None: ...


class Policy(Protocol):
    """A policy of the old API stack; what it has depends on its algorithm."""

    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...


class MetricsLogger(Protocol):
    """`ray.rllib.utils.metrics.metrics_logger.MetricsLogger`."""

    log_time: Callable[..., AbstractContextManager[Any]]
    stats: Any

    def log_value(self, key: object, value: object, **how: object) -> None: ...
    def peek(self, key: object, **how: object) -> Any: ...
    def set_value(self, key: object, value: object) -> None: ...
    def delete(self, *key: object) -> None: ...
    def reduce(self, **how: object) -> Any: ...


class ConnectorPipeline(Protocol):
    """`ray.rllib.connectors.connector_pipeline_v2.ConnectorPipelineV2`."""

    connectors: list[Any]

    def __call__(self, **given: object) -> Any: ...
    def insert_after(self, name_or_class: object, connector: object) -> Any: ...


class RLModule(Protocol):
    """`ray.rllib.core.rl_module.torch.TorchRLModule`."""

    observation_space: Any
    action_space: Any
    model_config: Any
    training: bool

    forward_exploration: Callable[..., State]
    forward_inference: Callable[..., State]
    _forward_exploration: Callable[..., State]
    _forward_inference: Callable[..., State]

    def get_state(self, **how: object) -> State: ...
    def set_state(self, state: object) -> None: ...
    def get_initial_state(self) -> State: ...
    def is_stateful(self) -> bool: ...
    def get_inference_action_dist_cls(self) -> Any: ...
    def get_exploration_action_dist_cls(self) -> Any: ...
    def parameters(self) -> Iterator[torch.nn.Parameter]: ...
    def named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]: ...
    def state_dict(self, **how: object) -> dict[str, torch.Tensor]: ...
    def unwrapped(self) -> Any: ...


class EnvRunner(Protocol):
    """An env runner of the new API stack, of one agent or of many."""

    config: AlgorithmConfig
    env: Any
    metrics: MetricsLogger
    module: Any
    worker_index: int
    _env_to_module: ConnectorPipeline
    _module_to_env: ConnectorPipeline
    _weights_seq_no: int
    _needs_initial_reset: bool
    _ongoing_episodes_for_metrics: dict[Any, list[Any]]

    def sample(self, **how: object) -> list[Any]: ...
    def get_metrics(self) -> Any: ...
    def get_spaces(self) -> dict[str, tuple[Space[Any], Space[Any]]]: ...
    def get_state(self, components: object = None, **how: object) -> State: ...
    def set_state(self, state: State) -> None: ...
    def _increase_sampled_metrics(self, num_steps: int, num_episodes_completed: int) -> None: ...


class EnvRunnerGroup(Protocol):
    """`ray.rllib.env.env_runner_group.EnvRunnerGroup`, of either API stack."""

    local_env_runner: Any
    _worker_manager: Any
    _ignore_ray_errors_on_env_runners: bool

    def num_remote_workers(self) -> int: ...
    def sync_weights(self, *of: object, **how: object) -> None: ...


class Learner(Protocol):
    """`ray.rllib.core.learner.torch.torch_learner.TorchLearner`."""

    config: AlgorithmConfig
    metrics: MetricsLogger
    module: Any
    should_module_be_updated: Callable[..., bool]
    _module_optimizers: dict[str, Any]
    _named_optimizers: dict[str, torch.optim.Optimizer]
    _optimizer_lr_schedules: dict[Any, Any]
    _optimizer_parameters: dict[Any, Any]
    _params: dict[Any, torch.nn.Parameter]
    _set_optimizer_state: Callable[..., None]
    _weights_seq_no: int

    def get_state(self, components: object = None, **how: object) -> State: ...
    def set_state(self, state: object) -> None: ...
    def before_gradient_based_update(self, *, timesteps: object) -> None: ...
    def after_gradient_based_update(self, *, timesteps: object) -> None: ...
    def apply_gradients(self, gradients_dict: object) -> None: ...
    def configure_optimizers_for_module(self, module_id: str, config: object = None) -> None: ...
    def get_optimizers_for_module(
        self, module_id: str
    ) -> Sequence[tuple[str, torch.optim.Optimizer]]: ...
    def get_param_ref(self, param: object) -> Any: ...
    def _set_optimizer_lr(self, optimizer: object, lr: object) -> None: ...


class LearnerGroup(Protocol):
    """`ray.rllib.core.learner.learner_group.LearnerGroup`."""

    is_local: bool
    _learner: Any

    def get_state(self, components: object = None, **how: object) -> State: ...
    def set_state(self, state: object) -> None: ...
    def update(self, *what: object, **how: object) -> list[Any]: ...
    def foreach_learner(self, func: Callable[..., Any], **how: object) -> Iterable[Any]: ...


class Algorithm(Protocol):
    """An algorithm, of either API stack."""

    config: AlgorithmConfig | Any
    iteration: int
    metrics: MetricsLogger
    env_runner: Any
    env_runner_group: EnvRunnerGroup | Any
    eval_env_runner: Any
    eval_env_runner_group: EnvRunnerGroup | Any
    learner_group: LearnerGroup | Any
    local_replay_buffer: Any
    training_iteration: int
    _counters: Any
    _iteration: int | None
    _timers: Any

    def get_state(self, components: object = None, **how: object) -> State: ...
    def set_state(self, state: State) -> None: ...
    def save_to_path(self, path: str, **how: object) -> Any: ...
    def stop(self) -> None: ...
    def train(self) -> dict[str, Any]: ...
    def training_step(self) -> Any: ...
    def __setstate__(self, state: object) -> None: ...
    def _check_component(self, name: str, components: object, not_components: object) -> bool: ...


class SingleAgentEpisode(Protocol):
    """`ray.rllib.env.single_agent_episode.SingleAgentEpisode`."""

    id_: Any
    agent_id: Any
    module_id: Any
    actions: Any
    extra_model_outputs: Any
    observations: Any
    rewards: Any
    is_done: bool
    is_terminated: bool
    is_truncated: bool
    t: int
    t_started: int

    def __len__(self) -> int: ...
    def env_steps(self) -> int: ...
    def get_actions(self, indices: object = None, **how: object) -> Any: ...
    def get_extra_model_outputs(self, key: str, indices: object = None, **how: object) -> Any: ...
    def get_infos(self, indices: object = None, **how: object) -> Any: ...
    def get_observations(self, indices: object = None, **how: object) -> Any: ...
    def get_rewards(self, indices: object = None, **how: object) -> Any: ...


class MultiAgentEpisode(Protocol):
    """`ray.rllib.env.multi_agent_episode.MultiAgentEpisode`."""

    SKIP_ENV_TS_TAG: str
    agent_episodes: dict[Any, SingleAgentEpisode]
    env_t_to_agent_t: Mapping[Any, Any]
    id_: Any
    is_done: bool

    def __len__(self) -> int: ...
    def env_steps(self) -> int: ...


class EpisodeV2(Protocol):
    """`ray.rllib.evaluation.episode_v2.EpisodeV2`: an episode of the old API stack."""

    custom_metrics: dict[str, float]
    hist_data: dict[str, list[float]]
    media: dict[str, Any]
    agent_rewards: Any
    episode_id: Any
    length: int
    total_reward: float
    _agent_reward_history: Mapping[Any, Sequence[float]]

    def get_agents(self) -> Collection[Any]: ...
    def policy_for(self, agent_id: object = None) -> str: ...


class AnyBatch(Protocol):
    """What `SampleBatch` and `MultiAgentBatch` of `ray.rllib.policy.sample_batch` both have."""

    count: int

    def agent_steps(self) -> int: ...
    def as_multi_agent(self) -> MultiAgentBatch: ...
    def copy(self) -> Any: ...
    def env_steps(self) -> int: ...


class MultiAgentBatch(AnyBatch, Protocol):
    """`ray.rllib.policy.sample_batch.MultiAgentBatch`."""

    policy_batches: dict[str, Any]


class Trainable(Protocol):
    """`ray.tune.Trainable`."""

    _iteration: int
    _iterations_since_restore: int
    _logdir: str
    _restored: bool
    _storage: Any
    _time_since_restore: float
    _time_total: float
    _timesteps_since_restore: int
