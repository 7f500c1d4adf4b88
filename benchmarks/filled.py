"""Close rotas without preemption that fill what they leave free, beside First-Fit, MaxWeight and the balanced rota; on examples and traces.

    python -m benchmarks filled                    # the examples
    python -m benchmarks filled --bases            # which rota to fill, and how often it should switch
    python -m benchmarks filled --traces borg google alibaba

Two rules that were tried and not kept are here as policies of one's own: a job without a slot starts only while no job that has one waits
("waiting first"), or only beside all slots of the schedule, empty ones too ("slots kept").
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import rota
from benchmarks.close import EXAMPLES, NAMES, PATIENCE_S, switching
from benchmarks.real_traces import LONGEST, alibaba, google
from rota.arrays import Array, Int
from rota.decide import decider_of
from rota.decide.backfill import fill, serve_slots
from rota.decide.msr import MSR_RULE, PLACE, MSRData, next_ring, own_rate
from rota.decide.state import State
from rota.policy import Policy
from rota.study.reproduce import EFFORTS
from rota.study.reproduce.borg import borg_sample
from rota.traces import Trace, group_types, scaled_to

LOADS = (0.5, 0.7, 0.8, 0.9, 0.95)
TRACE_LOADS = (0.5, 0.6, 0.7, 0.8, 0.9)
FACTORS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)  # of the switching rate
WINDOW_S = 3600.0  # in which arrivals are counted


def run(options: Sequence[str] = ()) -> None:
    """Prints the tables that are asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", nargs="*", default=NAMES)
    parser.add_argument("--loads", nargs="*", type=float)
    parser.add_argument("--jobs", type=int, default=1_000_000, help="simulated under each policy, on the examples")
    parser.add_argument("--seed", type=int, default=1, help="of the jobs of the examples")
    parser.add_argument("--bases", action="store_true", help="other rotas and switching rates to fill")
    parser.add_argument("--traces", nargs="*", choices=("borg", "google", "alibaba"))
    parser.add_argument("--months", nargs="*", type=int, default=(4, 0), help="seeds of the made months")
    given = parser.parse_args(options)
    if given.traces:
        on_traces(given.traces, given.loads or TRACE_LOADS, given.months)
    elif given.bases:
        other_bases(given.examples, given.loads or LOADS[2:], given.jobs, given.seed)
    else:
        on_examples(given.examples, given.loads or LOADS, given.jobs, given.seed)


# ---------------------------------------------------------------------------------------------------------------- rules not kept


def waiting_first(state: State, target: Int) -> float:
    """Fills only while no job that has a slot waits."""
    if serve_slots(state, target, False):
        slots, s, waits = state.data.schedules, state.counters[PLACE], False
        for k in range(target.shape[0]):
            waits = waits or target[k] < min(state.system[k], slots[s, k])
        if not waits:
            fill(state, target)
    return next_ring(state, own_rate(state, target))


def slots_kept(state: State, target: Int) -> float:
    """Fills only beside all slots of the schedule: what runs, and slots that are empty, fit together."""
    if serve_slots(state, target, False):
        slots, s, fits = state.data.schedules, state.counters[PLACE], True
        for r in range(state.residual.shape[0]):
            state.residual[r] = state.capacity[r]
            for k in range(target.shape[0]):
                state.residual[r] -= max(target[k], slots[s, k]) * state.demand[k, r]
            fits = fits and state.residual[r] >= 0
        if fits:
            fill(state, target)
    return next_ring(state, own_rate(state, target))


def own_rule(system: rota.System, policy: rota.MSR, decide: Any) -> rota.Custom:
    """A rota that fills by one of these rules."""
    decider = decider_of(system, policy.replace(backfill=True))
    return rota.Custom(decide, data=decider.data, memory=decider.memory, counters=decider.counters, compiled=True)


# ---------------------------------------------------------------------------------------------------------------- examples


def on_examples(names: Sequence[str], loads: Sequence[float], jobs: int, seed: int) -> None:
    """Mean response times at each load: the close rota exact, all others simulated, with exponential sizes."""
    heads = (
        "close, exact",
        "simulated",
        "+ backfill",
        "+ hold",
        "waiting first",
        "slots kept",
        "balanced + b.",
        "First-Fit",
        "MaxWeight-np",
    )
    print(f"{'system':<7} {'load':>4}" + "".join(f" {head:>15}" for head in heads) + "  bounds, a switch of the close rota")
    for name in names:
        for load in loads:
            system = example(name, load)
            close = rota.design_policy(system, objective="close")
            balanced = rota.design_policy(system, objective="load")
            answer = rota.analyze(system, close)
            exact = answer.mean_response_time if answer.exact_time_s <= PATIENCE_S and answer.accurate else np.nan
            plain = rota.simulate(system, close, jobs=jobs, seed=seed)
            others: list[Policy | str] = [
                close.replace(backfill=True),
                close.replace(backfill="hold"),
                own_rule(system, close, waiting_first),
                own_rule(system, close, slots_kept),
                balanced.replace(backfill=True),
                "first-fit",
                "max-weight-np",
            ]
            cells = [f"{exact:.5g}", cell(plain), *(cell(rota.simulate(system, policy, jobs=jobs, seed=seed)) for policy in others)]
            inside = (answer.lower <= plain.mean_queue_length + plain.mean_queue_length_interval).all() and (
                plain.mean_queue_length - plain.mean_queue_length_interval <= answer.upper
            ).all()
            line = f"{name:<7} {load:4.2f}" + "".join(f" {text:>15}" for text in cells)
            print(f"{line}  {'hold' if inside else 'broken'}, {switching(close)}", flush=True)


def other_bases(names: Sequence[str], loads: Sequence[float], jobs: int, seed: int) -> None:
    """Mean response times of filled rotas, close and balanced, at multiples of the switching rate that they were designed with."""
    print(f"{'system':<7} {'load':>4} {'rota':<9} {'fill':<9}" + "".join(f" {f'{factor:g} α':>9}" for factor in FACTORS))
    for name in names:
        for load in loads:
            system = example(name, load)
            for base, objective in (("close", "close"), ("balanced", "load")):
                policy = rota.design_policy(system, objective=objective)
                if len(policy.weights) == 1:
                    continue
                for backfill in (True, "hold"):
                    cells = []
                    for factor in FACTORS:
                        changed = policy.replace(backfill=backfill, switching_rate=factor * policy.switching_rate)
                        result = rota.simulate(system, changed, jobs=jobs, seed=seed)
                        cells.append(f"{result.mean_response_time:9.4g}" if result.stable else f"{'unstable':>9}")
                    print(
                        f"{name:<7} {load:4.2f} {base:<9} {'hold' if backfill == 'hold' else 'backfill':<9} " + " ".join(cells), flush=True
                    )


def example(name: str, load: float) -> rota.System:
    """An example at a load, without preemption, with exponential sizes."""
    system = rota.read_system(EXAMPLES / f"{name}.toml")
    return system.replace(mean_size=1 / system.service_rate, preemption="none", setup_time=None).scaled(load=load)


def cell(result: rota.Result) -> str:
    """A mean response time with the half-width of its interval."""
    return f"{result.mean_response_time:.4g} ± {result.interval:.2g}" if result.stable else "unstable"


# ---------------------------------------------------------------------------------------------------------------- traces


def on_traces(names: Sequence[str], loads: Sequence[float], months: Sequence[int]) -> None:
    """A table per trace: mean response times in seconds, also where the queue still grew; and how bursty it is."""
    for name in names:
        if name == "borg":
            for month in months:
                print(f"\nBorg, made month {month}, played twice, the first time left out")
                table(lambda load, month=month: borg(load, month), loads, 2, (0.1, 3.6e-6))
            continue
        make, by, title = (google, "thinning", "Google 2011") if name == "google" else (alibaba, "time", "Alibaba 2023")
        try:
            trace = make()
        except FileNotFoundError as missing:
            print(f"{title}: {missing.filename} is not here")
            continue
        grouped = group_types(trace.without_long(LONGEST), clusters=10, capacity=trace.capacity).trace
        print(f"\n{title}, played three times, the first time left out")
        table(lambda load, grouped=grouped, by=by: scaled(grouped, load, by), loads, 3, None)


def borg(load: float, month: int) -> tuple[Trace, rota.System]:
    """The made month of `rota reproduce borg` at a nominal load."""
    trace = borg_sample(load, month, EFFORTS["full"].borg_days)
    return trace, trace.system()


def scaled(trace: Trace, load: float, by: str) -> tuple[Trace, rota.System]:
    """A real trace brought to a load."""
    part, system = scaled_to(trace, load, by=by, preemption="full")  # type: ignore[arg-type]
    return part.in_memory(), system


def table(at: Any, loads: Sequence[float], loops: int, rates: tuple[float, float] | None) -> None:
    """All policies at all loads. The balanced rota is that of load 0.9; the close one that of 0.9, or of the load itself."""
    _, system = at(0.9)
    best = rota.system_load(system)
    rate = 1.0 / float(system.offered_work.sum() / system.arrival_rate.sum())  # of a typical job's end
    fast, slow = rates or (10 * rate, rate / 100)
    preemptive, patient = rota.MSR(best.candidates, best.weights, "full", fast), rota.MSR(best.candidates, best.weights, "none", slow)
    jobs = [at(load) for load in loads]
    high, high_s = designed(system)
    sizes = jobs[-1][0].jobs.select("size").collect()["size"]
    often = f"; it switches every {1 / high.switching_rate:,.0f} s" if len(high.weights) > 1 else ""
    print(f"close rota of load 0.9: {switching(high)}, {high_s:.1f} s to design{often}")
    print(f"sizes: mean {sizes.mean():,.0f} s, standard deviation {sizes.std():,.0f} s")
    rows: dict[str, list[Policy | str]] = {
        "First-Fit": ["first-fit"] * len(loads),
        "MaxWeight-np": ["max-weight-np"] * len(loads),
        "pMSR + backfill": [preemptive.replace(backfill=True)] * len(loads),
        "nMSR": [patient] * len(loads),
        "nMSR + backfill": [patient.replace(backfill=True)] * len(loads),
        "close nMSR": [high] * len(loads),
        "close nMSR + backfill": [high.replace(backfill=True)] * len(loads),
        "… once in 1,000 mean sizes": [high.replace(backfill=True, switching_rate=rate / 1000)] * len(loads),
        "close nMSR + hold": [high.replace(backfill="hold")] * len(loads),
        "… waiting first": [own_rule(server, high, waiting_first) for _, server in jobs],
        "… slots kept": [own_rule(server, high, slots_kept) for _, server in jobs],
    }
    print(f"{'load':<33}" + "".join(f"{load:>10}" for load in loads))
    for name, policies in rows.items():
        print(
            f"{name:<33}" + "".join(f"{mean(*pair, policy, loops):10,.0f}" for pair, policy in zip(jobs, policies, strict=True)), flush=True
        )
    for name in ("nMSR + backfill", "close nMSR + backfill"):
        cells = [replayed(*pair, policy, loops).switching_fraction for pair, policy in zip(jobs, rows[name], strict=True)]
        print(f"{f'{name}: switches':<33}" + "".join(f"{value:10.0%}" for value in cells) + " of the time", flush=True)
    own = [designed(server)[0] for _, server in jobs]
    for name, backfill in (("close, of this load", False), ("… + backfill", True), ("… + hold", "hold")):
        cells = [mean(*pair, policy.replace(backfill=backfill), loops) for pair, policy in zip(jobs, own, strict=True)]
        print(f"{name:<33}" + "".join(f"{value:10,.0f}" for value in cells), flush=True)
    bursts(jobs, own, loads, loops)


def designed(system: rota.System) -> tuple[rota.MSR, float]:
    """The close rota of a system without preemption, and the seconds that it took."""
    began = time.perf_counter()
    return rota.design_policy(system.with_preemption("none"), objective="close"), time.perf_counter() - began


def mean(trace: Trace, system: rota.System, policy: Policy | str, loops: int) -> float:
    """The mean response time of the jobs that came after the first time."""
    done = replayed(trace, system, policy, loops).batches
    return float(done[:, 1].sum() / done[:, 0].sum())


def replayed(trace: Trace, system: rota.System, policy: Policy | str, loops: int) -> rota.Result:
    """A trace played so many times, the first time as warm-up."""
    return rota.simulate(system, policy, workload=trace.looped(loops), jobs=10**9, warmup=1 / loops)


# ---------------------------------------------------------------------------------------------------------------- bursts


class Watched(NamedTuple):
    """`MSRData`, and what is seen: the time of the last event, what held since, and sums over time."""

    schedules: Any
    working: Any
    goal: Any
    start: Any
    target: Any
    rate: Any
    trigger: Any
    skip: bool
    setup_rate: float
    seen: Array  # time, share of capacity in empty slots, whether a job waits; then time, time with waiting, idle share × time with waiting


plain = MSR_RULE.decide


def watched(state: State, target: Int) -> float:
    """A rota without backfilling that notes how much of the server its empty slots hold while jobs of other types wait."""
    seen = state.data.seen
    elapsed = state.clock[0] - seen[0]
    seen[3] += elapsed
    seen[4] += elapsed * seen[2]
    seen[5] += elapsed * seen[2] * seen[1]
    again = plain(state, target)
    s, idle, waits = state.counters[PLACE], 0.0, 0.0
    for r in range(state.capacity.shape[0]):
        empty = 0.0
        for k in range(target.shape[0]):
            empty += max(state.data.schedules[s, k] - state.system[k], 0) * state.demand[k, r]
            waits = 1.0 if state.system[k] > state.data.schedules[s, k] else waits
        idle = max(idle, empty / state.capacity[r])
    seen[0], seen[1], seen[2] = state.clock[0], idle, waits
    return again


def bursts(jobs: Sequence[tuple[Trace, rota.System]], policies: Sequence[rota.MSR], loads: Sequence[float], loops: int) -> None:
    """How arrivals vary, and what that does to slots: on the trace, and with Poisson arrivals of the same rates and mean sizes."""
    rows: dict[str, list[str]] = {}
    for (trace, system), policy in zip(jobs, policies, strict=True):
        rows.setdefault("variance of the work that arrives in an hour, over Poisson's", []).append(f"{dispersion(trace, system):10,.0f}")
        for label, workload in (("trace", trace.looped(loops)), ("Poisson", None)):
            decider = decider_of(system, policy)
            data: MSRData = decider.data
            seen = np.zeros(6)
            spy = rota.Custom(watched, data=Watched(*data, seen), memory=decider.memory, counters=decider.counters, compiled=True)
            rota.simulate(system, spy, workload=workload, jobs=10**9 if workload is not None else 500_000)
            rows.setdefault(f"{label}: part of the time in which a job waits", []).append(f"{seen[4] / seen[3]:10.0%}")
            rows.setdefault(f"{label}: of the server in empty slots meanwhile", []).append(f"{seen[5] / max(seen[4], 1e-300):10.0%}")
    width = max(len(name) for name in rows) + 2
    print(f"{'close nMSR of this load':<{width}}" + "".join(f"{load:>10}" for load in loads))
    for name, cells in rows.items():
        print(f"{name:<{width}}" + "".join(cells), flush=True)


def dispersion(trace: Trace, system: rota.System) -> float:
    """The variance of the work that arrives in an hour, in units of the bottleneck, over that of a Poisson stream of these jobs."""
    best = rota.system_load(system)
    weight = system.demand[:, system.resources.index(best.bottleneck[0])]
    frame = trace.jobs.select("arrival", "size", "type").collect()
    amount = frame["size"].to_numpy() * weight[frame["type"].to_numpy()]
    window = np.floor((frame["arrival"].to_numpy() - trace.begin) / WINDOW_S).astype(np.int64)
    sums = np.bincount(window, weights=amount)
    return float(sums.var() / ((amount**2).sum() / len(sums)))  # a Poisson stream has the variance E[number] E[work²]
