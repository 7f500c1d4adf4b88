"""`python -m rota.cli`, and where the installed command `rota` enters."""

import gc
import sys

from rota.cli import main

_OBJECTS = 50_000  # made since it last looked: then Python looks for cycles; with its own 700 that takes a twentieth of the time of a plan


def run() -> None:
    """Ends the process with the exit code of the command line."""
    gc.set_threshold(_OBJECTS)
    try:
        sys.exit(main())
    finally:
        gc.freeze()  # all memory goes with the process: to look through it for cycles would take a quarter of a second


if __name__ == "__main__":
    run()
