"""`python -m rota.cli`, and where the installed command `rota` enters."""

import sys

from rota.cli import main


def run() -> None:
    """Ends the process with the exit code of the command line."""
    sys.exit(main())


if __name__ == "__main__":
    run()
