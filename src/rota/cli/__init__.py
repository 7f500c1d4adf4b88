"""The command line: one module per verb, no logic.

Data goes to standard output, progress and remarks to standard error. Exit codes: 0 done, 1 the problem has no answer or the work failed,
2 wrong use or a bad file.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cyclopts import App, CycloptsError

import rota
from rota.cli import (
    analyze,
    cancel,
    capacity,
    compare,
    design,
    explain,
    hold,
    jobs,
    logs,
    optimal,
    plan,
    plan_history,
    reproduce,
    schedules,
    schema,
    serve,
    show,
    simulate,
    slurm,
    submit,
    sweep,
    token,
    top,
    trace,
    tune,
    types,
    wait,
    warm_up,
)
from rota.cli.names import fill_in_names
from rota.cli.output import remark
from rota.cli.parameters import RUN_JOBS
from rota.errors import RotaError, RotaWarning

app = App(
    name="rota",
    help="Which jobs should my server run together, and how long will people wait?",
    version=rota.__version__,
    help_epilogue="Start with: rota plan FILE. The file is described by: rota schema.",
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
app.command(plan.plan)
app.command(capacity.capacity)
app.command(schedules.schedules)
app.command(design.design)
app.command(analyze.analyze)
app.command(optimal.optimal)
app.command(tune.tune)
app.command(simulate.simulate)
app.command(compare.compare)
app.command(sweep.sweep)
app.command(reproduce.reproduce)
app.command(trace.trace)
app.command(schema.schema)
app.command(warm_up.warm_up)
app.register_install_completion_command(help="Installs tab completion for your shell.")

app.command(serve.serve, group=RUN_JOBS)
app.command(submit.submit, group=RUN_JOBS, usage="Usage: rota submit [OPTIONS] -- COMMAND...")
app.command(types.types, group=RUN_JOBS)
app.command(jobs.jobs, group=RUN_JOBS)
app.command(show.show, group=RUN_JOBS)
app.command(logs.logs, group=RUN_JOBS)
app.command(wait.wait, group=RUN_JOBS)
app.command(cancel.cancel, group=RUN_JOBS)
app.command(hold.hold, group=RUN_JOBS)
app.command(hold.release, group=RUN_JOBS)
app.command(explain.explain, group=RUN_JOBS)
app.command(top.top, group=RUN_JOBS)
app.command(plan_history.plan_history, group=RUN_JOBS)
app.command(slurm.slurm)
app.command(token.token)


@contextmanager
def _remarks() -> Iterator[None]:
    """Warnings of Rota are remarks here."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", RotaWarning)
        as_before = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            remark(f"note: {message}") if issubclass(category, RotaWarning) else as_before(message, category, *where, **more)

        warnings.showwarning = show
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if {"--help", "-h"} & set(words):
        for verb in (simulate.simulate, compare.compare, sweep.sweep, serve.serve, trace.import_):
            if verb.__name__.strip("_") in words[:2]:
                fill_in_names(verb)
    try:
        submit.check_use(words)
        with _remarks():
            code = app(words, exit_on_error=False)
        sys.stdout.flush()  # here, where a closed pipe is handled
    except CycloptsError:  # its message is printed already
        return 2
    except RotaError as error:
        print(f"rota: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reader of our output has gone, as in `rota schedules … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, say
        print(f"rota: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("rota: interrupted", file=sys.stderr)
        return 130
    return code if isinstance(code, int) else 0  # what a verb returns, as `rota wait` does, is its exit code
