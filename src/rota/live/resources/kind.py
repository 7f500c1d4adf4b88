"""A kind of resource: how a job gets its share of it on this machine, and how it is held to that share.

A kind has two sides. In the daemon there is one object per resource of the server: it hands out shares. In the processes of a job there is
only the class: its static methods get, as plain JSON, what `terms` made of the share. The launcher imports every kind, and every supervisor
is a copy of the launcher, so a kind and all that it imports use the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from rota.model.live import LiveSettings

__all__ = ["Description", "Kind", "NotApplied", "Resource", "explained"]


class Resource(NamedTuple):
    """A resource of the server: its name, how much there is of it, and what each type of job needs of it."""

    name: str
    capacity: float
    demands: Sequence[float] = ()


class Description(NamedTuple):
    """How a job is held to its share, in a word ("" if it is not), and what people should know about it."""

    enforced: str
    remarks: Sequence[str] = ()


class NotApplied(Exception):
    """A job cannot be held to its share; the text says why."""


class Kind:
    """What a kind does not say otherwise: nothing is handed out, and nothing holds a job to its share."""

    name: ClassVar[str] = ""  # in shares and orders
    variables: ClassVar[frozenset[str]] = frozenset()  # that only Rota sets: a job does not get them from the job that submitted it
    kept: ClassVar[str] = ""  # why a suspended job cannot give its share back; "" if it can
    numbered: ClassVar[bool] = False  # whether shares are numbers of things, which are noted with the job
    moves: ClassVar[bool] = False  # whether a job that goes on is moved to its new share

    def __init__(self, resource: Resource, settings: LiveSettings) -> None:
        self.resource = resource

    # In the daemon ------------------------------------------------------------------------------------------------------

    @classmethod
    def takes(cls, resource: str) -> bool:
        """Whether a resource of this name is of this kind."""
        return False

    def describe(self) -> Description:
        """How a job is held to its share here, and remarks on that."""
        return Description("", [f"{self.resource.name} is counted only: nothing here holds a job to its share"])

    @property
    def whole(self) -> bool:
        """Whether it is handed out in whole numbers only."""
        return False

    @property
    def free(self) -> tuple[int, ...] | None:
        """The numbers that nobody has; None if none are handed out."""
        return None

    def take(self, amount: float, prefer: Sequence[int] = ()) -> list[int] | None:
        """The share of a job that starts, or goes on after it was suspended and had `prefer`; None if it has no numbers.

        ValueError: there is not so much left.
        """
        return None

    def hold(self, share: Sequence[int]) -> None:
        """Notes the share of a job that was found running. ValueError: another job has part of it."""

    def release(self, share: Sequence[int]) -> None:
        """Takes a share back."""

    def take_again(self, share: Sequence[int]) -> list[int] | None:
        """The share of a suspended job that gave its own back and goes on: the same, as far as it is free."""
        return None

    def are_free(self, share: Sequence[int]) -> bool:
        """Whether nobody has any part of this share."""
        return True

    def take_over(self, before: Kind) -> None:
        """Goes on where another object for the same resource was."""

    def terms(self, share: Sequence[int] | None, amount: float, attempt: str) -> Any:
        """What the processes of a job are given, as plain JSON; None if nothing. `attempt` is a name for this run of the job."""
        return None

    # In the processes of a job, with what `terms` gave ------------------------------------------------------------------

    @staticmethod
    def apply(terms: Any) -> None:
        """Holds this process to its share, just before it becomes the program of the job. `NotApplied`: that cannot be done."""

    @staticmethod
    def environment(terms: Any) -> Mapping[str, str]:
        """What the job is told by variables."""
        return {}

    @staticmethod
    def clean_up(terms: Any) -> str:
        """Removes what `apply` made, when no process of the job is left; why the job ended, if the kind knows, else ""."""
        return ""

    @staticmethod
    def move(thread: int, terms: Any) -> None:
        """Holds a thread of a job that goes on to its new share. ProcessLookupError: it has ended."""


@contextmanager
def explained(step: str) -> Iterator[None]:
    """`NotApplied` with this text for whatever goes wrong."""
    try:
        yield
    except Exception as error:
        raise NotApplied(f"{step}: {getattr(error, 'strerror', None) or repr(error)}") from error
