"""What is counted only: no more is given out than there is, and a job is trusted to keep to its share."""

from __future__ import annotations

from typing import ClassVar

from rota.live.resources.kind import Kind

__all__ = ["Counted"]


class Counted(Kind):
    """All that no other kind takes."""

    name: ClassVar[str] = "counted"

    @classmethod
    def takes(cls, resource: str) -> bool:
        """Every resource."""
        return True
