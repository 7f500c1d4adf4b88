"""A kind of resource for `test_kinds.py`: numbered licences, told to a job by ROTA_LICENCES. It is a whole kind: one module.

The job also hears of them by its priority, which is lowered by one for each: so that a test sees that `apply` ran in its process.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

from rota.live.resources.kind import Description, Resource
from rota.live.resources.numbered import Numbered, Pool

if TYPE_CHECKING:
    from rota.model.live import LiveSettings


class Licences(Numbered):
    """Licences from number 100 on."""

    name: ClassVar[str] = "licences"
    variables: ClassVar[frozenset[str]] = frozenset({"ROTA_LICENCES"})
    kept: ClassVar[str] = "a suspended program keeps its licence"

    def __init__(self, resource: Resource, settings: LiveSettings) -> None:
        super().__init__(resource, settings)
        self.pool = Pool(range(100, 100 + round(resource.capacity)))

    @classmethod
    def takes(cls, resource: str) -> bool:
        """Licences."""
        return resource.lower() == "licences"

    def describe(self) -> Description:
        """By a variable."""
        return Description("ROTA_LICENCES", [f"{self.resource.name}: a job is told its licences by ROTA_LICENCES"])

    @staticmethod
    def apply(terms: list[int]) -> None:
        """A lower priority."""
        os.nice(len(terms))

    @staticmethod
    def environment(terms: list[int]) -> dict[str, str]:
        """ROTA_LICENCES."""
        return {"ROTA_LICENCES": ",".join(map(str, terms))}
