"""Names that stand for a policy to be designed for the system at hand: "nMSR", "improved".

Each name has one designer, a function of a package that comes later, which is loaded when it is asked for:

    designer(name: str, system: System, **options) -> Policy

All take the options `load` (a `Load` of the system, so that it is not solved again) and `time_limit_s`; those of rotas take more. A new
name is one call of `register_designed`, beside the class of its policy.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from rota.errors import BadSpec, Problem
from rota.model import System
from rota.model.system import check_system
from rota.policy.registry import Policy

__all__ = ["DESIGNED_NAMES", "design_named", "register_designed"]

DESIGNED_NAMES: dict[str, str] = {}  # name: its designer, as "module:function"


def register_designed(name: str, designer: str) -> None:
    """Makes a name of a policy to be designed known everywhere."""
    if name in DESIGNED_NAMES:
        raise BadSpec([Problem("name", "is that of another policy to be designed: each has its own", name)])
    DESIGNED_NAMES[name] = designer


def design_named(name: str, system: System, **options: Any) -> Policy:
    """The policy of this name, designed for this system."""
    if name not in DESIGNED_NAMES:
        raise BadSpec([Problem("policy", f"must be one of {', '.join(DESIGNED_NAMES)}", name)])
    check_system(system)
    module, _, function = DESIGNED_NAMES[name].partition(":")
    designer: Callable[..., Policy] = getattr(import_module(module), function)
    return designer(name, system, **options)
