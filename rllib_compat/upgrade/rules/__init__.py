"""The rules, in the order in which they run."""

from rllib_compat.upgrade.rule import Rule
from rllib_compat.upgrade.rules.algorithm_config import AlgorithmConfig
from rllib_compat.upgrade.rules.dict_configs import DictConfigs
from rllib_compat.upgrade.rules.gym_api import GymApi
from rllib_compat.upgrade.rules.imports import Imports
from rllib_compat.upgrade.rules.multi_agent_env import MultiAgentEnv
from rllib_compat.upgrade.rules.numpy_names import NumpyNames
from rllib_compat.upgrade.rules.result_keys import ResultKeys
from rllib_compat.upgrade.rules.trainers import Trainers

#: `imports` is first: the others see the names of today in the first run and in the second.
RULES: tuple[type[Rule], ...] = (
    Imports,
    DictConfigs,
    NumpyNames,
    GymApi,
    MultiAgentEnv,
    ResultKeys,
    AlgorithmConfig,
    Trainers,
)
