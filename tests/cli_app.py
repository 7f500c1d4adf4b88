"""The verbs of the command line and their arguments, found by asking the application."""

from collections.abc import Iterator

from cyclopts import App, Argument

from rota.cli import app


def verbs(within: App = app, before: tuple[str, ...] = ()) -> Iterator[tuple[str, list[Argument]]]:
    """Every verb with its arguments; one in a group has both names: `trace cut`."""
    for name in within:
        if name.startswith("-"):
            continue
        words = (*before, name)
        if within[name].default_command is None:
            yield from verbs(within[name], words)
        else:
            yield " ".join(words), list(within[name].assemble_argument_collection(parse_docstring=True))


def is_option(argument: Argument) -> bool:
    """Whether it is given by its name."""
    return argument.name.startswith("--")
