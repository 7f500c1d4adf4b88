"""Between what a dispatcher that knows all could reach, and what one that knows nothing reaches."""

from __future__ import annotations

from dataclasses import dataclass

from rota.analysis import analyze
from rota.analysis.pooled import least_mean_response_time
from rota.capacity import FleetLoad
from rota.design.fleet_load import checked_fleet_load
from rota.design.split import design_split
from rota.display import html_lines, html_title, number
from rota.model import Fleet
from rota.policy import Split

__all__ = ["FleetBounds", "fleet_bounds"]


@dataclass(frozen=True)
class FleetBounds:
    """`lower`: no dispatcher and no policy that does not know sizes has a lower mean response time (`rota.analysis.pooled`).

    `split_time`: that of random splitting with a rota for each kind, `split`, exactly. It is a reference from above, not a bound: rules
    that look at the servers, such as joining the shortest queue, should do better, but that is not proved for all of them.
    """

    fleet: Fleet
    lower: float
    split_time: float
    split: Split

    def explain(self) -> str:
        """The answer in words, one sentence per line."""
        return "\n".join(
            [
                f"No dispatcher and no policy can have a mean response time below {number(self.lower)}.",
                f"Jobs that are spread at random over servers that each follow a rota have {number(self.split_time)}.",
            ]
        )

    def __repr__(self) -> str:
        return f"<FleetBounds: at least {number(self.lower)}, split at random {number(self.split_time)}>"

    def _repr_html_(self) -> str:
        return html_title("Between all and no knowledge") + html_lines(self.explain())


def fleet_bounds(fleet: Fleet, *, load: FleetLoad | None = None, split: Split | None = None, time_limit_s: float = 30.0) -> FleetBounds:
    """A lower bound on the mean response time of every dispatcher and policy, and that of random splitting as a reference from above.

    Sizes are taken as exponential. `split`: the one to refer to, designed (`rota.design_split`) if not given.
    """
    best = checked_fleet_load(fleet, load, time_limit_s)
    found = design_split(fleet, load=best, time_limit_s=time_limit_s) if split is None else split
    time = analyze(fleet, found, sizes="exponential").mean_response_time
    return FleetBounds(fleet, least_mean_response_time(fleet, best), time, found)
