"""The command line: one module per verb, no logic.

Data goes to standard output, progress and remarks to standard error. Exit codes: 0 done, 1 the problem has no answer or the work failed,
2 wrong use or a bad file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

import rota
from rota.cli import analyze, capacity, compare, design, plan, reproduce, schedules, schema, simulate, sweep, trace
from rota.errors import RotaError

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
app.command(simulate.simulate)
app.command(compare.compare)
app.command(sweep.sweep)
app.command(reproduce.reproduce)
app.command(trace.trace)
app.command(schema.schema)
app.register_install_completion_command(help="Installs tab completion for your shell.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code."""
    try:
        app(arguments, exit_on_error=False)
        sys.stdout.flush()  # here, where a reader that has gone is no surprise
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
    return 0
