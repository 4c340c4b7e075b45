"""What is recorded: environments, and configs around them. The same for all Rays."""

#: Episodes that end and lose lives while frames are skipped, waited for, or fired.
GAMES = {
    "skipping": {"lost": (41, 90), "end": 131},
    "every_frame": {"name": "MadeDeterministic-v4", "lost": (41, 90), "end": 131},
    "no_fire": {"fire": False, "lost": (30,), "end": 77},
    "ends_while_waiting": {"end": 5, "noops": (12, 2, 5)},
    "ends_while_firing": {"name": "MadeDeterministic-v4", "end": 9, "noops": (8, 7, 2, 9)},
    "loses_while_firing": {"lost": (4, 8), "end": 60, "noops": (2, 3)},
    "loses_while_waiting": {"lost": (2,), "end": 40, "noops": (5,)},
    "is_cut": {"lost": (41,), "end": 70, "cut": True},
}

#: A game, a part of the config, and a part of its `model`.
PLAYED = [
    *((game, {}, {}) for game in GAMES),
    ("skipping", {}, {"dim": 42}),
    ("skipping", {}, {"dim": 64, "framestack": False}),
    ("skipping", {"clip_rewards": False}, {"framestack": False}),
    *(
        ("skipping", {"preprocessor_pref": "rllib"}, model)
        for model in (
            {},
            {"dim": 42},
            {"dim": 80},
            {"dim": 96},
            {"dim": 42, "grayscale": True},
            {"grayscale": True, "zero_mean": False},
            {"zero_mean": False},
        )
    ),
]

#: How many steps of each are recorded.
STEPS = 60
#: And of an environment that gives one value after the other.
FEWER = 12


def name_of(game, config, model):
    """The name of a case."""
    told = ["%s=%s" % pair for pair in sorted(config.items()) + sorted(model.items())]
    return " ".join([game] + told)
