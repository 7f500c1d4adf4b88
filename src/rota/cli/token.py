"""`rota token …`: who may use the scheduler over TCP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App

import rota
from rota.cli.output import print_json, remark
from rota.cli.parameters import RUN_JOBS, AtThisMachine, Json

if TYPE_CHECKING:
    from rota.live.http.tokens import Tokens

token = App(name="token", help="Tokens: who may use the scheduler over TCP. On its Unix socket none is needed.", group=RUN_JOBS)

_FILE = "tokens.json"


@token.command
def add(name: str, /, *, at: AtThisMachine = None, json: Json = False) -> None:
    """Makes a token and prints it. Only its hash is stored, so it cannot be shown again.

    Parameters
    ----------
    name
        The user or the purpose of the token.
    """
    made = _tokens(at).add(name)
    print_json({"name": name, "token": made}) if json else print(made)
    remark("keep it, it is not shown again; to use it: export ROTA_TOKEN=…")


@token.command(name="list")
def list_(*, at: AtThisMachine = None, json: Json = False) -> None:
    """Lists the names of the tokens."""
    names = _tokens(at).names()
    if json:
        print_json({"names": names})
    elif names:
        print("\n".join(names))
    else:
        remark("no tokens")


@token.command
def remove(name: str, /, *, at: AtThisMachine = None) -> None:
    """Revokes a token: it is no longer accepted.

    Parameters
    ----------
    name
        The name it was made under.
    """
    _tokens(at).remove(name)
    remark(f"removed: {name}")


def _tokens(at: str | None) -> Tokens:
    """The tokens of a scheduler of this machine: they are made where its files are, never over the network."""
    from rota.live.http.tokens import Tokens
    from rota.live.paths import state_directory

    if at is None:
        return Tokens(state_directory() / _FILE)
    if at.startswith(("http://", "https://")):
        raise rota.BadSpec([rota.Problem("--at", "tokens are made on the machine of the scheduler: give its state directory", at)])
    directory = Path(at.removeprefix("unix:")).parent if at.startswith("unix:") else Path(at).expanduser().absolute()
    if not directory.is_dir():
        raise rota.BadSpec([rota.Problem("--at", "there is no such state directory", str(directory))])
    return Tokens(directory / _FILE)
