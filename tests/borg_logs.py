"""Small logs in the schema of Borg 2019's `instance_events`, and the plain-Python reading of them that the import is compared with."""

import json

SUBMIT, QUEUE, ENABLE, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, UPDATE_PENDING, UPDATE_RUNNING = range(11)
SECOND = 1_000_000


def event(time, type, collection=1, instance=0, request=None, *, text=False):
    """One event; with `text` the 64-bit integers are strings, as BigQuery writes them. `request` is (cpus, memory)."""
    wide = str if text else int
    return {
        "time": wide(time),
        "type": wide(type),
        "collection_id": wide(collection),
        "scheduling_class": 2,
        "missing_type": None,
        "collection_type": 0,
        "priority": 103,
        "alloc_collection_id": wide(0),
        "instance_index": wide(instance),
        "machine_id": None,
        "alloc_instance_index": wide(-1),
        "resource_request": None if request is None else {"cpus": request[0], "memory": request[1]},
        "constraint": [],
    }


def json_lines(events):
    """The events as JSON lines."""
    return "".join(json.dumps(one) + "\n" for one in events)


def life(collection, instance, submit, start, end, request=(0.5, 0.25), **how):
    """Submitted, scheduled, finished; times in seconds."""
    times = [(submit, SUBMIT), (start, SCHEDULE), (end, FINISH)]
    return [event(round(t * SECOND), kind, collection, instance, request, **how) for t, kind in times]


def plain_jobs(events):
    """The rule for one job, word for word and slowly: a sorted list of (arrival, collection, instance, size, demand)."""
    lives = {}
    for one in events:
        lives.setdefault((int(one["collection_id"]), int(one["instance_index"])), []).append(one)
    jobs = []
    for (collection, instance), life in lives.items():
        timed = [(int(one["time"]), int(one["type"]), one["resource_request"]) for one in life]
        submits = [t for t, kind, _ in timed if kind == SUBMIT]
        ends = [t for t, kind, _ in timed if kind == FINISH and t > 0]
        if not submits or min(submits) == 0 or not ends:
            continue
        starts = [t for t, kind, _ in timed if kind == SCHEDULE and 0 < t < max(ends)]
        if not starts:
            continue
        asked = [(t, kind, (r["cpus"], r["memory"])) for t, kind, r in timed if r is not None and t <= max(starts)]
        if not asked or not any(max(asked)[2]):
            continue
        jobs.append((min(submits) / 1e6, collection, instance, (max(ends) - max(starts)) / 1e6, max(asked)[2]))
    return sorted(jobs)


def imported_jobs(trace):
    """The jobs of a trace as (arrival, size, demand), in their order."""
    table = trace.jobs.select("arrival", "size", "type").collect()
    return [(arrival, size, tuple(trace.demand[kind].tolist())) for arrival, size, kind in table.iter_rows()]
