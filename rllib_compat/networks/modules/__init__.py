"""RLModules of our own, for networks that today's default modules cannot represent.

A checkpoint that was converted to one of them names it, so `rllib_compat` has to be installed
where it is loaded. Each computes a `Graph` in torch and trains like any module of Ray.
"""
