"""How the file descriptors of this process are divided: connections and jobs cannot take those that the scheduler itself needs."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import NamedTuple

__all__ = ["DescriptorShares", "raise_limit", "share_descriptors"]

_OWN = 32  # database, logs, locks, listeners, the launcher, a planning process, and one or two files that are open for a moment
_MOST_CONNECTIONS = 1024  # of each listener
_PLENTY = 1 << 20  # where there is no limit


class DescriptorShares(NamedTuple):
    """How many descriptors there are for the connections of each listener, and for watching supervisors."""

    connections: int
    watched: int


def raise_limit() -> None:
    """Raises the limit to its maximum: each running job needs a descriptor."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def share_descriptors() -> DescriptorShares:
    """Divides what the scheduler itself does not need: at most a quarter for each of two listeners, the rest for supervisors."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    rest = max((_PLENTY if limit == resource.RLIM_INFINITY else limit) - _OWN, 8)
    connections = min(rest // 4, _MOST_CONNECTIONS)
    return DescriptorShares(connections, rest - 2 * connections)
