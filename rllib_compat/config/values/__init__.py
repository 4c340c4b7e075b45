"""What the values of legacy keys may be: a small vocabulary, and the declarations in its words.

`kinds` holds single values, `containers` what has parts, `common` the declarations that many
rules share. The rules name them in `Rule.value`; `rllib_compat.config.border` applies them.
"""
