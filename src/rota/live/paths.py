"""Where the scheduler keeps its files: the state directory and the socket in it."""

from __future__ import annotations

import os
from pathlib import Path

from rota.errors import BadSpec, Problem

__all__ = ["socket_path", "state_directory"]

_LONGEST_SOCKET = 107  # bytes: sun_path of Linux holds 108, with the NUL that ends it


def state_directory() -> Path:
    """The default state directory: `$ROTA_DIR`, else `$XDG_STATE_HOME/rota`, else `~/.local/state/rota`. It need not exist."""
    if chosen := os.environ.get("ROTA_DIR"):
        return Path(os.path.abspath(chosen))
    # By the XDG standard a path that is not absolute is ignored.
    if (state := os.environ.get("XDG_STATE_HOME", "")).startswith("/"):
        return Path(state) / "rota"
    try:
        return Path.home() / ".local" / "state" / "rota"
    except RuntimeError:
        raise BadSpec([Problem("state directory", "this user has no home directory: set ROTA_DIR to a directory of its own")]) from None


def socket_path(directory: Path) -> Path:
    """The Unix socket of the scheduler whose state directory this is."""
    path = directory / "rota.sock"
    length = len(os.fsencode(path))
    if length > _LONGEST_SOCKET:
        rule = f"the path of its socket has {length} bytes and Linux allows {_LONGEST_SOCKET}: choose a shorter one (ROTA_DIR)"
        raise BadSpec([Problem("state directory", rule, str(directory))])
    return path
