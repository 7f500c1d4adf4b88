"""How the event-level functions are compiled.

They take many arrays, in named tuples, and allocate nothing. Two settings make that fast. `_nrt=False` tells numba that nothing is
allocated, so references to arrays need not be counted, which costs ten times what the functions do; a function that does allocate does not
compile this way.
`forceinline=True` puts the functions into one another, so that the named tuples are not copied from call to call: three times faster again
where they are not views (`rota.views`).

Compiled code is kept on disk by `rota.kernel_cache`, which detects when a function that was put into another one has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba as nb
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic, overload

from rota.kernel_cache import keep_on_disk

__all__ = ["compiled", "kernel", "large_kernel", "prefetch"]

_F = TypeVar("_F", bound=Callable[..., object])


def kernel(function: _F) -> _F:
    """Compiles a function that allocates nothing."""
    return compiled(function, _nrt=False, forceinline=True, no_cfunc_wrapper=True)


def large_kernel(function: _F) -> _F:
    """The same for a large function, which is called and not put into others: it compiles much faster, and the call costs little."""
    return compiled(function, _nrt=False, no_cfunc_wrapper=True)


def compiled(function: _F, **options: Any) -> _F:
    """Compiles a function with numba's options, at its first call, and keeps the machine code on disk.

    While it runs other threads of Python may run too.
    """
    dispatcher: _F = nb.njit(**{"nogil": True, **options})(function)
    keep_on_disk(dispatcher)
    return dispatcher


def prefetch(array: Any, index: int) -> None:
    """Asks the processor to fetch an entry of an array that is needed soon. Does nothing in plain Python."""


@intrinsic
def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tools: Any = cgutils
        view = context.make_array(array)(context, builder, arguments[0])
        place = context.cast(builder, arguments[1], index, nb.types.intp)
        address = tools.get_item_pointer(context, builder, array, view, [place])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = tools.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
        builder.call(function, [builder.bitcast(address, byte), word(0), word(3), word(1)])  # to read, soon and often, as data
        return context.get_dummy_value()

    return nb.types.void(array, index), generate


@overload(prefetch, inline="always")
def _prefetch_compiled(array: Any, index: int) -> Any:
    fetch: Any = _prefetch

    def ask(array: Any, index: int) -> None:
        fetch(array, index)

    return ask
