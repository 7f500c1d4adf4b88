"""Machine code on disk that is never stale.

Numba keeps compiled code in files, and takes it as fresh while the file that defines the function has not changed. But functions
of other files are compiled into it. So here the name of a file of machine code carries a digest of everything that went into it: the
function and all that it reaches through the globals it names, as they are loaded in this process; the options of compilation; the fields of
the named tuples among the arguments. A change of any of them leads to another name. A comment or a moved line changes nothing.

The directory is numba's choice: `NUMBA_CACHE_DIR`, beside the source, or a directory of the user where that is read-only. What is kept
beside the source is read in any case, so that one who may write there (`rota warm-up`) compiles for all users of an installation. Where no
directory can be written nothing is kept, and functions are compiled in every process.

Of processes that need the same machine code at once, one compiles it and the others wait for it, by a lock on a file. So a process can have
others compile for it what it needs next.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from llvmlite.binding import add_symbol
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]
from numba.core.types import NamedTuple, NamedUniTuple

try:
    import fcntl
except ImportError:  # not a Unix system: processes that need the same machine code compile it each for itself
    fcntl = None  # type: ignore[assignment]

__all__ = ["digest_of", "folder_of", "is_kept", "keep_on_disk", "named_globals"]

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


def folder_of(dispatcher: Any) -> str | None:
    """The folder in which the machine code of a function is kept, None if it is not kept."""
    cache = dispatcher._cache
    return str(cache.cache_path) if isinstance(cache, _Cache) else None


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
    _lock: FileLock | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for arguments of these types. If it is None this process is to compile it, and others wait for it."""
        found = self._load(sig, target_context)
        if found is None:
            self._release()
            self._lock = FileLock(Path(self._cache_path, f"{self._name_of(sig)}.lock"))
            found = self._load(sig, target_context)  # another process may have compiled it meanwhile
        if found is not None:
            self._release()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps machine code, and removes that of other versions of the function."""
        code, base = digest_of(self.dispatcher), self._impl.filename_base
        self._use(self._cache_path, sig)
        try:
            with suppress(OSError):
                super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        finally:
            self._release()
        for file in Path(self._cache_path).glob(f"{base}-*.nb[ic]"):
            if not file.name.startswith(f"{base}-{code}-"):
                file.unlink(missing_ok=True)

    def is_kept(self) -> bool:
        """Whether machine code of the function as it is now is on disk, for arguments of some types."""
        name = f"{self._impl.filename_base}-{digest_of(self.dispatcher)}-*.nbi"
        return any(any(Path(place).glob(name)) for place in self._places())

    def _places(self) -> list[str]:
        """The directories in which machine code may be."""
        beside = str(Path(self.dispatcher.py_func.__code__.co_filename).parent / "__pycache__")
        return [self._cache_path] if "NUMBA_CACHE_DIR" in os.environ else list(dict.fromkeys([self._cache_path, beside]))

    def _load(self, sig: Any, target_context: Any) -> Any:
        for place in self._places():
            self._use(place, sig)
            with suppress(OSError):
                found = self._read(sig, target_context)
                if found is not None:
                    return found
        return None

    def _read(self, sig: Any, target_context: Any) -> Any:
        """Loads machine code from the place that is in use, or None."""
        if self.dispatcher.targetoptions.get("_nrt", True):
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        # Numba would first load all that it can compile and compile its own runtime, which takes 50 MB and half a second. Machine code that
        # allocates nothing needs only the addresses of functions that unpack arguments. Whatever is compiled later loads the rest itself.
        for name, address in _nrt_python.c_helpers.items():
            add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]

    def _use(self, place: str, sig: Any) -> None:
        code = digest_of(self.dispatcher)
        self._cache_file = IndexDataCacheFile(place, self._name_of(sig), code)  # type: ignore[no-untyped-call]

    def _name_of(self, sig: Any) -> str:
        return f"{self._impl.filename_base}-{digest_of(self.dispatcher)}-{_short(sha256(_written(sig).encode()))}"

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


class FileLock:
    """A lock that processes share, held from now on until `release`; a process that ends gives it up.

    After half a minute, and where files cannot be locked, one goes on without it: what is kept on disk is right in any case.
    """

    _PATIENCE_S, _PAUSE_S = 30.0, 0.02

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, -1
        if fcntl is None:
            return
        until = time.monotonic() + self._PATIENCE_S
        with suppress(OSError):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            while True:
                try:
                    fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    if time.monotonic() > until:
                        return
                    time.sleep(self._PAUSE_S)

    def release(self) -> None:
        """Lets the next process go on."""
        if self._file >= 0:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1


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
