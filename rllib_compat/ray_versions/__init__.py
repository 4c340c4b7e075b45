"""Every difference between the supported Ray releases, and every touch of Ray's private names.

No other package asks which Ray is installed. Each function here has one meaning for all releases,
and its comment says which release changed what. A module for what of Ray it touches: others import
the module (`from rllib_compat.ray_versions import learners`), and none imports Ray before it is
used.
"""
