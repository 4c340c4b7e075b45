"""The parts of SAC's and DDPG's networks, by what the canonical names of their arrays begin with.

Where a part is a stack of dense layers, its arrays are `<stack>.hidden.<i>` and, for the last,
linear layer, `<stack>.out`.
"""

#: The policy, the critics, and what turns observations into features for all of them
#: (`use_state_preprocessor`).
POLICY, CRITIC, TWIN, STATE = "pi", "q", "twin_q", "state"
