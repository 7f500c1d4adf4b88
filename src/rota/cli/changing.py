"""What `rota cancel`, `rota hold` and `rota release` share: which jobs they act on, and how the outcome is printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

import rota
from rota.cli.live_parts import connect, ids_text, parse_ids, read_jobs
from rota.cli.output import print_json, remark

if TYPE_CHECKING:
    from rota.live.http.client import Client
    from rota.live.messages import Changed, Job, JobState

Action = Literal["cancel", "hold", "release"]

# Without numbers: the states in which each action has an effect.
_ABOUT: dict[Action, list[JobState]] = {
    "cancel": ["held", "blocked", "waiting", "starting", "running", "suspended", "stopping"],
    "hold": ["blocked", "waiting"],
    "release": ["held"],
}


@dataclass(frozen=True)
class Chosen:
    """Jobs by their numbers, or all of a name, of a type, or at all."""

    id: Sequence[str]
    name: str | None
    type: str | None
    all: bool

    def ids(self, client: Client, action: Action) -> list[int]:
        """Their numbers, in ascending order if they are not given."""
        if self.name is None and self.type is None and not self.all:
            if not self.id:
                raise rota.BadSpec([rota.Problem("ID", "is missing: give the number of a job, or several, or --name, --type or --all")])
            return parse_ids(self.id)
        if self.id:
            raise rota.BadSpec([rota.Problem("ID", "does not go with --name, --type or --all", " ".join(self.id))])
        found = [job.id for job in reversed(read_jobs(client, _ABOUT[action], self.type, self.name, None))]
        remark(f"{len(found):,} job{'s' * (len(found) != 1)} to {action}")
        return found


def change(at: str | None, action: Action, chosen: Chosen, words: Callable[[Job], str], json: bool, *, now: bool = False) -> int:
    """Cancels, holds or releases jobs, prints the outcome, and returns the exit code: 1 if any refused."""
    with connect(at) as client:
        ids = chosen.ids(client, action)
        changed = client.change(action, ids, now) if ids else None
    return _tell(changed, words, json)


def _tell(changed: Changed | None, words: Callable[[Job], str], json: bool) -> int:
    """Ranges of jobs go into one line."""
    jobs, refused = (changed.jobs, changed.refused) if changed is not None else ([], [])
    for text in refused:
        remark(f"rota: {text}")
    if json:
        print_json({"jobs": [job.model_dump(mode="json") for job in jobs], "refused": refused})
    else:
        for word, same in groupby(jobs, words):
            ids = [job.id for job in same]
            print(f"job{'s' if len(ids) > 1 else ''} {ids_text(ids)}: {word}")
    return 1 if refused else 0
