"""The spaces of common environments by name, without their packages."""

from __future__ import annotations

from rllib_compat.neutral import spaces
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import Space, parse_repr
from rllib_compat.runtime.atari import game_of


@frozen
class EnvSpaces:
    """The spaces of an environment.

    Attributes:
        observation_space: The observation space; None if wrappers decide it.
        action_space: The action space.
    """

    observation_space: Space | None
    action_space: Space


_CART = "Box([-4.8 -inf -0.41887903 -inf], [4.8 inf 0.41887903 inf], (4,), float32)"
_PENDULUM = "Box([-1. -1. -8.], [1. 1. 8.], (3,), float32)"
_CAR = "Box([-1.2 -0.07], [0.6 0.07], (2,), float32)"
_ACROBOT = (
    "Box([-1. -1. -1. -1. -12.566371 -28.274334], [1. 1. 1. 1. 12.566371 28.274334], (6,), float32)"
)
_RACE = "Box([-1. 0. 0.], [1. 1. 1.], (3,), float32)"


def _vector(size: int) -> str:
    return f"Box(-inf, inf, ({size},), float32)"


def _joints(size: int) -> str:
    return f"Box(-inf, inf, ({size},), float64)"


def _torques(number: int, most: float = 1.0) -> str:
    return f"Box({-most}, {most}, ({number},), float32)"


_Row = tuple[tuple[int, ...], str, str]

#: The environment → its versions, observations and actions, as gymnasium prints them. Those of
#: Box2D are unbounded, as gym had them; the numbers of MuJoCo's joints are those of gym 0.15
#: (versions 2 and 3) and gymnasium 1.2 (4 and 5).
KNOWN_ENVS: dict[str, tuple[_Row, ...]] = {
    "CartPole": (((0, 1), _CART, "Discrete(2)"),),
    "Pendulum": (((0, 1), _PENDULUM, "Box(-2.0, 2.0, (1,), float32)"),),
    "MountainCar": (((0,), _CAR, "Discrete(3)"),),
    "MountainCarContinuous": (((0,), _CAR, "Box(-1.0, 1.0, (1,), float32)"),),
    "Acrobot": (((1,), _ACROBOT, "Discrete(3)"),),
    "FrozenLake": (((0, 1), "Discrete(16)", "Discrete(4)"),),
    "FrozenLake8x8": (((0, 1), "Discrete(64)", "Discrete(4)"),),
    "CliffWalking": (((0, 1), "Discrete(48)", "Discrete(4)"),),
    "Taxi": (((1, 2, 3), "Discrete(500)", "Discrete(6)"),),
    "LunarLander": (((2, 3), _vector(8), "Discrete(4)"),),
    "LunarLanderContinuous": (((2, 3), _vector(8), _torques(2)),),
    "BipedalWalker": (((2, 3), _vector(24), _torques(4)),),
    "BipedalWalkerHardcore": (((2, 3), _vector(24), _torques(4)),),
    "CarRacing": (((0, 1, 2, 3), "Box(0, 255, (96, 96, 3), uint8)", _RACE),),
    "HalfCheetah": (((2, 3, 4, 5), _joints(17), _torques(6)),),
    "Hopper": (((2, 3, 4, 5), _joints(11), _torques(3)),),
    "Swimmer": (((2, 3, 4, 5), _joints(8), _torques(2)),),
    "Walker2d": (((2, 3, 4, 5), _joints(17), _torques(6)),),
    "Ant": (
        ((2, 3), _joints(111), _torques(8)),
        ((4,), _joints(27), _torques(8)),
        ((5,), _joints(105), _torques(8)),
    ),
    "Humanoid": (
        ((2, 3, 4), _joints(376), _torques(17, 0.4)),
        ((5,), _joints(348), _torques(17, 0.4)),
    ),
    "HumanoidStandup": (
        ((2, 4), _joints(376), _torques(17, 0.4)),
        ((5,), _joints(348), _torques(17, 0.4)),
    ),
    "Reacher": (((2, 4), _joints(11), _torques(2)), ((5,), _joints(10), _torques(2))),
    "Pusher": (((2, 4, 5), _joints(23), _torques(7, 2.0)),),
    "InvertedPendulum": (((2, 4, 5), _joints(4), _torques(1, 3.0)),),
    "InvertedDoublePendulum": (((2, 4), _joints(11), _torques(1)), ((5,), _joints(9), _torques(1))),
}

#: The number of actions of Atari games that do not have all 18 (ale-py 0.12).
_ACTIONS = {
    3: "Backgammon Freeway Skiing",
    4: "Atlantis Atlantis2 Blackjack Breakout Casino Kaboom",
    5: "Frogger Pacman Surround Tetris VideoCheckers",
    6: "AirRaid BasicMath Bowling Carnival DemonAttack Galaxian KingKong NameThisGame Pong Pooyan "
    "Qbert SirLancelot SpaceInvaders UpNDown",
    7: "Assault",
    8: "Gopher Phoenix Tutankham",
    9: "Asterix BeamRider CrazyClimber Enduro Koolaid LostLuggage MsPacman VideoPinball",
    10: "Amidar MrDo Othello TicTacToe3D TimePilot VideoChess WizardOfWor",
    12: "Turmoil",
    14: "Asteroids KeystoneKapers KungFuMaster",
    16: "JourneyEscape",
}
_ALL_ACTIONS = 18
_ACTIONS_OF = {game: number for number, games in _ACTIONS.items() for game in games.split()}


def known_spaces(name: str) -> EnvSpaces | None:
    """Returns the spaces of an environment by name (`CartPole-v0`), or None.

    For Atari games, the wrappers of a Ray decide the observation space.
    """
    game = game_of(name)
    if game is not None:
        return EnvSpaces(None, spaces.Discrete(_ACTIONS_OF.get(game, _ALL_ACTIONS)))
    stem, _, version = name.rpartition("-v")
    for versions, observations, actions in KNOWN_ENVS.get(stem, ()):
        action_space = parse_repr(actions)
        if version in map(str, versions) and action_space is not None:
            return EnvSpaces(parse_repr(observations), action_space)
    return None
