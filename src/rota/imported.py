"""Objects by the place they are imported from, as `module:name`: a policy or an arrival process of your own, on the command line or in a
study, where every worker imports it.

The name alone does not say what the object was when a result was made. So its *source* goes with it: a hash of the text of its module.
What that module imports in turn is not in the hash.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from rota.errors import BadSpec, Problem

__all__ = ["import_object", "is_place", "place_of", "source_of"]

_PLACE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def is_place(text: object) -> bool:
    """Whether this is written as `module:name`."""
    return isinstance(text, str) and _PLACE.fullmatch(text) is not None


def import_object(place: str, what: str) -> Any:
    """The object at `module:name`. Modules in the working directory are found too, after all others; `what` names it in error messages."""
    module, _, name = place.partition(":")
    found = _module(module, place, what)
    if not hasattr(found, name):
        raise BadSpec([Problem(what, f"module {module} has no {name!r} ({found.__file__})", place)])
    return getattr(found, name)


def source_of(place: str, what: str) -> str:
    """A hash of the source of the module at `module:name`, which is the source that is loaded."""
    return _hash(_text(_module(place.partition(":")[0], place, what), place, what))


def place_of(thing: object, function: object) -> str | None:
    """The `module:name` under which another process finds `thing`, which was made of a function of that module; None if there is none."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if module is None or module.__name__ == "__main__" or getattr(module, "__file__", None) is None:
        return None
    return next((f"{module.__name__}:{name}" for name, value in vars(module).items() if value is thing), None)


def _module(name: str, place: str, what: str) -> ModuleType:
    """The module as its file says now: one that was edited since it was loaded is loaded again."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last, so that nothing here hides another module; worker processes start with the same path
    try:
        importlib.invalidate_caches()
        module = importlib.import_module(name)
        text = _text(module, place, what)
        if _SEEN.setdefault(name, _hash(text)) != _hash(text) or _edited(module, text):
            _SEEN[name] = _hash(text)
            exec(compile(text, str(module.__file__), "exec", dont_inherit=True), vars(module))  # reload would go by the time of the file
        return module
    except BadSpec:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise BadSpec([Problem(what, f"module {name} cannot be imported: {error}", place)]) from error
        rule = f"there is no module {name}: write it as a file {name.rpartition('.')[2]}.py here, or install it"
        raise BadSpec([Problem(what, rule, place)]) from None
    except Exception as error:  # anything that the module raises
        raise BadSpec([Problem(what, f"module {name} cannot be imported: {type(error).__name__}: {error}", place)]) from error


_SEEN: dict[str, str] = {}  # the sources of the modules loaded here


def _text(module: ModuleType, place: str, what: str) -> bytes:
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py"):
        raise BadSpec([Problem(what, "must be in a module of Python source, whose hash goes into the results", place)])
    return Path(file).read_bytes()


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]


def _edited(module: ModuleType, text: bytes) -> bool:
    """Whether a function of a module is not what its source says: the file was edited after other code had loaded it."""
    compiled = compile(text, str(module.__file__), "exec", dont_inherit=True)
    written = {code.co_name: code for code in compiled.co_consts if isinstance(code, CodeType)}
    functions = (getattr(value, "py_func", value) for value in vars(module).values())  # numba's keep the function as py_func
    mine = [value for value in functions if isinstance(value, FunctionType) and value.__module__ == module.__name__]
    return any(value.__code__ != written[value.__name__] for value in mine if value.__name__ in written)
