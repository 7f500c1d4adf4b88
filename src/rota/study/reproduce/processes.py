"""Figure "The structure of the modulating processes": those of the example's pMSR, nMSR and sMSR, state by state."""

from __future__ import annotations

import numpy as np
import polars as pl

from rota.process import ModulatingProcess, build_process
from rota.study.reproduce.example import example_policy, example_system
from rota.study.reproduce.figure import Figure, Finding, Redrawn, Settings, n

__all__ = ["FIGURE", "example_processes"]

ALPHA, GAMMA = 0.06, 10.0  # numbers for the letters of the figure; those of the pMSR are α = 2
_ROUNDS = {  # the rates of one round from (1,4,0) on, as the figure writes them with all μ = 1
    "pMSR": [2.0, 2.0],
    "nMSR": [ALPHA, 1, 4, 3, 2, 1, ALPHA, 2, 1],
    "sMSR": [ALPHA, 5 * GAMMA, 4 * GAMMA, 3 * GAMMA, 2 * GAMMA, GAMMA, ALPHA, 2 * GAMMA, GAMMA],
}


def example_processes() -> dict[str, ModulatingProcess]:
    """The three processes of the figure."""
    policies = (example_policy("full"), example_policy("none", ALPHA), example_policy("setup", ALPHA, setup_rate=GAMMA))
    return {name: build_process(example_system(), policy) for name, policy in zip(_ROUNDS, policies, strict=True)}


def _compute(settings: Settings) -> Redrawn:
    processes = example_processes()
    findings = []
    for name, process in processes.items():
        round_ = _round(process)
        findings.append(
            Finding(
                f"{name}: a round of {len(_ROUNDS[name])} states with rates {_rates(_ROUNDS[name])}.",
                f"{len(process)} states with rates {_rates(round_)}; {process.working_fraction:.1%} of the time in working states.",
                round_ == _ROUNDS[name],
            )
        )
    remark = f"Numbers in place of letters: α = 2 for the pMSR, α = {ALPHA:g} for the others, γ = {GAMMA:g}, all μ = 1."
    tables = {
        "states": pl.concat([_states(*item) for item in processes.items()]),
        "moves": pl.concat([_moves(*item) for item in processes.items()]),
    }
    return Redrawn(tables, tuple(findings), (remark,))


def _round(process: ModulatingProcess) -> list[float]:
    """The rates of one round, from the working state with the most jobs on."""
    assert process.loop is not None
    order = np.roll(process.loop, -int(np.argmax(process.schedules[process.loop].sum(axis=1) * process.working[process.loop])))
    return [round(float(process.exit_rate[s]), 12) for s in order]


def _rates(rates: list[float]) -> str:
    return ", ".join(n(rate) for rate in rates)


def _states(name: str, process: ModulatingProcess) -> pl.DataFrame:
    names = [process.state_name(s) for s in range(len(process))]
    return pl.DataFrame({"policy": [name] * len(names), "state": names, "working": process.working, "part_of_time": process.stationary})


def _moves(name: str, process: ModulatingProcess) -> pl.DataFrame:
    moves = range(len(process.source))
    return pl.DataFrame(
        {
            "policy": [name] * len(moves),
            "source": [process.state_name(int(process.source[k])) for k in moves],
            "target": [process.state_name(int(process.target[k])) for k in moves],
            "rate": process.rate,
            "trigger": [process.trigger_name(k) for k in moves],
        }
    )


FIGURE = Figure(
    "processes", "The modulating processes", 'Figure "The structure of the modulating processes", Appendix "Example System"', _compute
)
