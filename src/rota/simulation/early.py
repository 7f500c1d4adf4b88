"""`compare_early`: policies on the same jobs, of which those that cannot be the best are stopped early.

All policies see the same jobs, in rounds: an eighth of them, a quarter, a half, all. No job is simulated twice. After the second and the
third round a policy is stopped

    if its queue grew                    in this round and the one before;
    if it is clearly worse (optional)    in this round and the one before: its paired difference to the best one, less its interval, is more
                                         than a tenth of the mean of the best.

The others go on to all jobs, and their results are to the bit those of runs without looks. What is known of a policy that was stopped is on
a prefix of the same jobs, and so are its differences to the others.

Intervals of differences hold for all pairs at once (Bonferroni), at 95 %, although policies are stopped by what they show: of the error of
0.05 the differences at the end have four fifths, and those at the two looks at which a policy may be stopped a tenth each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np

from rota.errors import RotaError
from rota.model import System
from rota.policy import Policy, policy_name
from rota.simulation.compare import Comparison, Difference, compare_pair, labels_of
from rota.simulation.compiled import will_compile
from rota.simulation.entry import Entry, mean_of
from rota.simulation.playing import Playing
from rota.simulation.side_by_side import in_threads
from rota.simulation.simulate import SimulationProgress

__all__ = ["EarlyComparison", "Stopped", "compare_early"]

_LOOKS = (0.125, 0.25, 0.5)  # parts of the jobs after which there is a look; a policy may be stopped from the second on
_MAY_STOP = len(_LOOKS) - 1
_CLEARLY = 0.1  # of the mean of the best: a policy that is worse by less goes on
_AT_THE_END = 0.8  # of the error of all intervals: that of the differences at the end


@dataclass(frozen=True, eq=False)
class Stopped:
    """Why a policy was stopped early, and its differences to those that went on, by label, on the jobs that it saw."""

    why: Literal["growing", "worse"]
    against: dict[str, Difference]


@dataclass(frozen=True)
class EarlyComparison(Comparison):
    """A comparison of which some policies were `stopped` early, by label. The results of the others are on all jobs."""

    stopped: dict[str, Stopped] = field(default_factory=dict)

    @property
    def at_the_end(self) -> int:
        """Of how many differences that hold at once one at the end has the interval."""
        return _of(self.pairs, _AT_THE_END)

    def early_words(self) -> str:
        """Why some policies saw fewer jobs, in a sentence; empty if none did."""
        grew, worse = ([label for label, one in self.stopped.items() if one.why == why] for why in ("growing", "worse"))
        reasons = [f"{', '.join(grew)} because the queue grew"] * bool(grew) + [f"{', '.join(worse)} as clearly worse"] * bool(worse)
        return f"Stopped early, after fewer of the same jobs: {'; '.join(reasons)}." if reasons else ""

    def difference(self, first: str, second: str, paired: Callable[..., Difference] | None = None) -> Difference:
        """The same on the jobs that both saw.

        Not a number if both were stopped early, or one was and the difference is not that of the mean response time.
        """
        early = [label for label in (first, second) if label in self.stopped]
        if not early:
            return super().difference(first, second, paired)
        other = second if early[0] == first else first
        apart = self.stopped[early[0]].against.get(other)
        if apart is None or paired not in (None, compare_pair):
            return Difference(np.nan, np.nan)
        return apart if early[0] == first else Difference(-apart.mean, apart.interval)


def compare_early(
    system: System,
    policies: Sequence[Policy],
    *,
    jobs: int,
    seed: int = 0,
    worse: bool = True,
    progress: Callable[[str, SimulationProgress], None] | None = None,
) -> EarlyComparison:
    """Simulates policies on the same `jobs` jobs, fewer of those that cannot be the best.

    `worse`: also those that are clearly worse, not only those whose queue grows. A policy that cannot run on this system is in `errors`.
    Ctrl-C ends it by KeyboardInterrupt.
    """
    labels = labels_of([policy_name(policy) for policy in policies])
    running, interrupted = threading.Lock(), threading.Event()
    errors: dict[str, str] = {}
    entries = {}
    for label, policy in zip(labels, policies, strict=True):
        try:
            entries[label] = Entry(label, policy, Playing(system, policy, None, seed, jobs))
        except RotaError as error:
            errors[label] = str(error)

    def play(one: Entry, to: int, last: bool) -> RotaError | None:
        def tell(compiling: bool = False) -> None:
            if interrupted.is_set():
                raise KeyboardInterrupt  # only the main thread hears Ctrl-C
            if progress is not None:
                with running:
                    progress(one.label, SimulationProgress(one.run.done, jobs, 0.0, np.inf, 0.0, compiling))

        try:
            if one.run.done == 0 and will_compile(one.run.measuring.run.engine):
                tell(True)
            one.run.play(to, tell)
            if last:
                one.end(None)
            else:
                one.look(None)
        except RotaError as error:
            return error
        return None

    left, stopped = dict(entries), dict[str, Stopped]()
    for part in (*_LOOKS, 1.0):
        to, last = int(jobs * part), part == 1
        found = in_threads(partial(play, to=to, last=last), [(one,) for one in left.values()], interrupted)
        if interrupted.is_set():
            raise KeyboardInterrupt
        for label, problem in zip(list(left), found, strict=True):
            if problem is not None:
                errors[label] = str(problem)
                del left[label], entries[label]
        if not last and left:
            gone = _gone(left, worse, may_stop=part != _LOOKS[0])
            for label, why in gone.items():
                one = left.pop(label)
                if why.why == "worse":  # of a queue that grows nothing more is to be known
                    one.end(None)
            stopped |= gone
    return EarlyComparison(tuple(one.result for one in entries.values()), errors, tuple(entries), stopped=stopped)


def _gone(left: dict[str, Entry], worse: bool, may_stop: bool) -> dict[str, Stopped]:
    """Those that are stopped now. Counts for each one the rounds in a row in which it was worse."""
    known = sum(np.isfinite(mean_of(one.result)) for one in left.values())
    comparisons = _of(max(known * (known - 1) // 2, 1), (1 - _AT_THE_END) / _MAY_STOP)
    best = min(left.values(), key=lambda one: mean_of(one.result))
    gone: dict[str, Stopped] = {}
    for label, one in left.items():
        apart = one.difference(best, comparisons)
        clearly = worse and apart.mean - apart.interval > _CLEARLY * mean_of(best.result)
        one.lost = one.lost + 1 if clearly else 0
        if may_stop and (one.grew > 1 or one.lost > 1):
            gone[label] = Stopped("growing" if one.grew > 1 else "worse", {})
    going = [one for label, one in left.items() if label not in gone]
    return {
        label: replace(why, against={other.label: left[label].difference(other, comparisons) for other in going if why.why == "worse"})
        for label, why in gone.items()
    }


def _of(pairs: int, part: float) -> int:
    """So many differences, each with the error that it has where all pairs share a part of 0.05."""
    return int(np.ceil(pairs / part))
