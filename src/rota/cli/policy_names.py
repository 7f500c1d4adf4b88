"""The names of the policies in the help of the verbs, from the registry.

Docstrings have `{policies}` in their place, filled in when help is asked for: the registry needs numpy, and `rota` starts without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["fill_in_policy_names"]


def fill_in_policy_names(verb: Callable[..., Any]) -> None:
    """Puts names in the place of `{policies}` (those of which the name is enough) and `{rotas}` (those to be designed)."""
    from rota.policy import POLICY_NAMES, records

    names = {"{policies}": list(POLICY_NAMES), "{rotas}": [record.name for record in records() if record.designed]}
    for place, listed in names.items():
        verb.__doc__ = (verb.__doc__ or "").replace(place, ", ".join(listed))
