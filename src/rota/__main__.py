"""`python -m rota` is the command `rota`."""

from rota.cli.__main__ import run

run()
