"""What a connector kind is, as data: its options, its archetype, what it may promise. No I/O.

Forms, commands, checks and the connectors read the same description; an option nobody declared is an error.
"""

from recovery_api.domain.kinds.base import Kind, Option, abilities_of, kind_get, kind_names, options_parse

__all__ = ["Kind", "Option", "abilities_of", "kind_get", "kind_names", "options_parse"]
