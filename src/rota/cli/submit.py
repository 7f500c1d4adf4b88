"""`rota submit`: a command becomes a job."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

import rota
from rota.arguments import parse_duration
from rota.cli.live_parts import connect, ids_text, parse_ids, printable
from rota.cli.output import print_json, remark
from rota.cli.parameters import At, Flag, Json
from rota.cli.wait import wait_for

if TYPE_CHECKING:
    from rota.live.messages import Status

Several = Annotated[list[str] | None, Parameter(negative="")]

# What a clean environment keeps: most programs need these to find their files and their language.
_KEPT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TZ", "USER")
_RESOURCES = {"cores": r"cores?|cpus?", "memory": r"(memory|mem|ram)(_.*)?", "gpus": r"gpus?"}


def submit(
    *command: str,
    type: str | None = None,
    cores: str | None = None,
    memory: str | None = None,
    gpus: str | None = None,
    need: Several = None,
    name: str = "",
    array: str | None = None,
    after: Several = None,
    after_any: Several = None,
    hold: Flag = False,
    cwd: Path | None = None,
    env: Several = None,
    clean_env: Flag = False,
    estimate: str | None = None,
    shell: Flag = False,
    wait: Flag = False,
    at: At = None,
    json: Json = False,
) -> int:
    """Submits a command as a job; the scheduler decides when it runs.

    Prints the number of the job. The command runs in this folder and with your environment, and what it prints goes to a file (see: rota
    logs). For example: rota submit --type train -- python train.py

    Parameters
    ----------
    command
        The program and its arguments, after --. No shell is involved: the program gets each argument as it is.
    type
        The job type, one of the plan's (see: rota types). Give this, or what the job needs.
    cores
        CPU cores that the job needs; it runs as the smallest type that has enough of everything.
    memory
        Memory that it needs: 7G, 500M.
    gpus
        GPUs that it needs.
    need
        Another resource of the server that it needs: network_gbps=2. May be given several times.
    name
        A name, to find it again.
    array
        One job for each number of a range, 1-100; each finds its own in $ROTA_ARRAY_INDEX.
    after
        Start only after these jobs have ended well: 12,13 or 12-20. If one of them fails, this one is cancelled.
    after_any
        Start only after these jobs have ended, well or not.
    hold
        Do not start it before: rota release.
    cwd
        The folder it runs in; this one if not given.
    env
        Set a variable, NAME=VALUE; NAME alone passes yours on. May be given several times.
    clean_env
        Do not pass your environment on, only HOME, LANG, LC_ALL, LOGNAME, PATH, SHELL, TZ, USER and what --env says.
    estimate
        How long it may take: 90 (seconds), 90m, 2h. Used by the policy EASY.
    shell
        The command is one word in quotes, a line for /bin/sh: 'sort a | uniq > b'.
    wait
        Wait until it has ended, and end with its exit code (see: rota wait).
    """
    argv = _argv(command, shell)
    environment = _environment(env or [], clean_env)
    indices = None if array is None else _indices(array)
    earlier = {"--after": after or [], "--after-any": after_any or []}
    well, ended = (parse_ids(texts, place) if texts else [] for place, texts in earlier.items())
    estimate_s = None if estimate is None else parse_duration(estimate, "--estimate")
    folder = _folder(cwd)
    asked = {option: text for option, text in {"cores": cores, "memory": memory, "gpus": gpus}.items() if text is not None}
    if type is not None and (asked or need):
        raise _wrong("--type", "does not go with --cores, --memory, --gpus or --need: a type says what its jobs need")
    with connect(at) as client:
        made = client.submit(
            argv,
            type=type,
            demand=_demand(client.status(), asked, need or []) if type is None else None,
            name=name,
            cwd=str(folder),
            env=environment,
            array=indices,
            after=well,
            after_any=ended,
            hold=hold,
            estimate_s=estimate_s,
        )
        if made.remark:
            remark(made.remark)
        if json:
            print_json(made.model_dump(mode="json"))
        else:
            print(f"{'job' if len(made.ids) == 1 else 'jobs'} {ids_text(made.ids)}")
        sys.stdout.flush()  # before a wait that may be long
        return wait_for(client, made.ids) if wait else 0


def check_use(arguments: Sequence[str]) -> None:
    """The command must come after `--`: otherwise an option meant for it could be taken for one of ours."""
    if arguments[:1] == ["submit"] and "--" not in arguments and not {"--help", "-h"} & set(arguments):
        raise _wrong("command", "must come after --, as in: rota submit --type train -- python train.py")


def _wrong(place: str, rule: str, value: object = None) -> rota.BadSpec:
    return rota.BadSpec([rota.Problem(place, rule, value)])


def _argv(command: Sequence[str], shell: bool) -> list[str]:
    if not command or not command[0]:
        raise _wrong("command", "is missing: it comes after --, as in: rota submit --type train -- python train.py")
    if not all(map(_is_text, command)):
        raise _wrong("command", "must be UTF-8 text", printable(" ".join(command)))
    if shell and len(command) > 1:
        raise _wrong("--shell", "takes the command as one word: put the line into quotes", " ".join(command))
    return ["/bin/sh", "-c", command[0]] if shell else list(command)


def _environment(settings: Sequence[str], clean: bool) -> dict[str, str]:
    """The whole environment of the job. The token is left out unless asked for, as the scheduler stores the environment on disk."""
    mine = {name: value for name, value in os.environ.items() if name != "ROTA_TOKEN" and (name in _KEPT or not clean)}
    strange = [name for name, value in mine.items() if not (_is_text(name) and _is_text(value))]
    if strange:
        remark(f"not passed on, as they are not UTF-8 text: {', '.join(map(printable, strange))}")
    found = {name: value for name, value in mine.items() if name not in strange}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals and name in os.environ:
            value = os.environ[name]
        elif not name or not equals:
            raise _wrong("--env", "must be NAME=VALUE, or the name of a variable that you have", setting)
        if not _is_text(name + value):
            raise _wrong("--env", "must be UTF-8 text", printable(setting))
        found[name] = value
    return found


def _is_text(text: str) -> bool:
    """Whether the text can be sent: bytes from the system that are not UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _folder(cwd: Path | None) -> Path:
    try:
        return Path.cwd() if cwd is None else cwd.expanduser().absolute()
    except FileNotFoundError:  # the current folder was deleted
        raise _wrong("--cwd", "the folder you are in is not there any more: go to another, or give the full path of one") from None


def _indices(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,10})-(\d{1,10})", text)
    if match is None or int(match[1]) > int(match[2]):
        raise _wrong("--array", "must be a range of numbers: 1-100", text)
    return int(match[1]), int(match[2])


def _demand(status: Status, asked: dict[str, str], needs: Sequence[str]) -> dict[str, float]:
    """What is asked for, by the server's names of its resources; of those not mentioned nothing."""
    from rota.live.resources.amounts import parse_amount

    names = [resource.name for resource in status.resources]
    if not asked and not needs:
        types = ", ".join(known.name for known in status.types)
        need = f"say what the job needs of {', '.join(names)}: --cores 2 --memory 4G"
        raise _wrong("--type", f"is missing: one of {types} (see: rota types); or {need}")
    amounts: dict[str, str] = {}
    for option, text in asked.items():
        resource = next((name for name in names if re.fullmatch(_RESOURCES[option], name, re.IGNORECASE)), None)
        if resource is None:
            raise _wrong(f"--{option}", f"the server has no such resource: it has {', '.join(names)} (see --need)")
        amounts[resource] = text
    for text in needs:
        resource, equals, amount = text.partition("=")
        if not equals:
            raise _wrong("--need", "must be RESOURCE=AMOUNT", text)
        if resource not in names:
            raise _wrong("--need", f"the server has no such resource: it has {', '.join(names)}", resource)
        if resource in amounts:
            raise _wrong("--need", "is given twice", resource)
        amounts[resource] = amount
    return dict.fromkeys(names, 0.0) | {name: parse_amount(text, name) for name, text in amounts.items()}
