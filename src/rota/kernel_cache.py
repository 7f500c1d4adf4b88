"""Machine code on disk that is never stale.

Numba keeps compiled code in files, and takes it as fresh while the file that defines the function has not changed. But functions
of other files are compiled into it. So here the name of a file of machine code carries a digest of everything that went into it: the
function and all that it reaches through the globals it names, as they are loaded in this process; the options of compilation; the fields of
the named tuples among the arguments. A change of any of them leads to another name. A comment or a moved line changes nothing.

The directory is numba's choice: beside the source, for the user where that is read-only, or `NUMBA_CACHE_DIR`. Where none can be written
nothing is kept, and functions are compiled in every process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.core.types import NamedTuple, NamedUniTuple

__all__ = ["digest_of", "is_kept", "keep_on_disk", "named_globals"]

# What numba puts in the place of a function or a field is not named in the code that uses it; these modules have all of that.
_TOOLS = b"".join(file.read_bytes() for name in ("kernel.py", "views.py") for file in Path(__file__).parent.glob(name))


def keep_on_disk(dispatcher: Any) -> None:
    """Lets a function of numba keep its machine code on disk, if there is a place that can be written."""
    cache: Any = _Cache
    with suppress(RuntimeError):  # numba: "no locator available"
        dispatcher._cache = cache(dispatcher.py_func)
        dispatcher._cache.dispatcher = dispatcher


def is_kept(dispatcher: Any) -> bool:
    """Whether the machine code of a function is on disk, so that its first call in this process need not compile it."""
    cache = dispatcher._cache
    return isinstance(cache, _Cache) and cache.is_kept()


class _Files(CompileResultCacheImpl):
    """How the files are called, before the digests are added."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        """Module, function and version of Python; numba would add the number of the line."""
        plain = fullname.replace("<", "").replace(">", "")
        return f"{plain}.py{sys.version_info[0]}{sys.version_info[1]}{abiflags}"


class _Cache(FunctionCache):
    """Numba's cache of one function, with file names that carry digests: of the code, and of the types of the arguments."""

    _impl_class = _Files
    dispatcher: Any

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for arguments of these types, or None."""
        self._use(digest_of(self.dispatcher), sig)
        return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps machine code, and removes that of other versions of the function."""
        code, base = digest_of(self.dispatcher), self._impl.filename_base
        self._use(code, sig)
        super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        for file in Path(self._cache_path).glob(f"{base}-*.nb[ic]"):
            if not file.name.startswith(f"{base}-{code}-"):
                file.unlink(missing_ok=True)

    def is_kept(self) -> bool:
        """Whether machine code of the function as it is now is on disk, for arguments of some types."""
        return any(Path(self._cache_path).glob(f"{self._impl.filename_base}-{digest_of(self.dispatcher)}-*.nbi"))

    def _use(self, code: str, sig: Any) -> None:
        name = f"{self._impl.filename_base}-{code}-{_short(sha256(_written(sig).encode()))}"
        self._cache_file = IndexDataCacheFile(self._cache_path, name, code)  # type: ignore[no-untyped-call]


def _written(sig: Any) -> str:
    """The types of arguments, with the fields of named tuples."""
    if isinstance(sig, NamedTuple | NamedUniTuple):
        return f"{sig.instance_class.__qualname__}{sig.fields}{[_written(one) for one in sig]}"
    return str([_written(one) for one in sig]) if isinstance(sig, tuple) else str(sig)


def digest_of(function: Callable[..., object]) -> str:
    """A digest of a function and of everything that it reaches through the globals that it names."""
    total = sha256(_TOOLS)
    for piece in _reached(function):
        total.update(piece.encode())
        total.update(b"\0")
    return _short(total)


def _reached(function: object) -> Iterator[str]:
    """What is reached, written as text, each thing once and always in the same order."""
    seen: set[int] = set()
    todo = [function]
    while todo:
        thing = todo.pop()
        if isinstance(thing, Dispatcher):
            yield str(sorted((key, repr(value)) for key, value in thing.targetoptions.items()))
            thing = thing.py_func
        if isinstance(thing, FunctionType):
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            yield f"{thing.__qualname__} {thing.__defaults__} {_code(thing.__code__)}"
            todo += [cell.cell_contents for cell in thing.__closure__ or ()]
            todo += named_globals(thing).values()
        elif isinstance(thing, type):
            yield f"{thing.__qualname__} {getattr(thing, '_fields', '')}"
        elif isinstance(thing, np.ndarray):
            yield f"{thing.dtype} {thing.shape} {thing.tobytes().hex()}"
        elif isinstance(thing, bool | int | float | complex | str | tuple | np.generic):
            yield repr(thing)


def _code(code: CodeType) -> str:
    """What code does, without the lines on which it stands."""
    constants = [
        _code(one) if isinstance(one, CodeType) else str(sorted(map(repr, one))) if isinstance(one, frozenset) else repr(one)
        for one in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_flags
    return f"{code.co_code.hex()} {code.co_exceptiontable.hex()} {names} {constants}"


def named_globals(function: FunctionType) -> dict[str, Any]:
    """The globals that a function names, or that a function within it does."""

    def names(code: CodeType) -> list[str]:
        return [*code.co_names, *(name for one in code.co_consts if isinstance(one, CodeType) for name in names(one))]

    return {name: function.__globals__[name] for name in names(function.__code__) if name in function.__globals__}


def _short(total: Any) -> str:
    return str(total.hexdigest()[:16])
