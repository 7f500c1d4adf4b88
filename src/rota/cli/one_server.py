"""The file of a system, for verbs that take one server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.model import System

__all__ = ["read_server"]


def read_server(file: Path) -> System:
    """The system; a fleet is refused. Imports on first use: `rota --help` stays fast."""
    from rota import model

    return model.read_server(file)
