"""Resources that are counted only: jobs never get more than there is, but nothing holds a job to its share."""

from __future__ import annotations

from typing import ClassVar

from rota.live.resources.kind import Kind

__all__ = ["Counted"]


class Counted(Kind):
    """Every resource that no other kind takes."""

    name: ClassVar[str] = "counted"

    @classmethod
    def takes(cls, resource: str) -> bool:
        """Every resource."""
        return True
