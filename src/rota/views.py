"""Named tuples of arrays that compiled functions take by reference.

The state of a server is some fifty arrays. Numba passes a named tuple as a value, seven words for each array, from function to function;
compiling that takes most of the compiler's time. A *view* of a named tuple is a list of words in memory, and compiled functions take its
address: each field is read where it is used. In Python nothing changes, nor in the text of the functions: `state.clock[0]` is the same
for a named tuple and for a view of one.

The words of a field: of an array its address, shape and strides; of a number its value; of a named tuple marked `by_reference` the
address of its own words; of any other tuple those of its items. Word 0 is free for the one who makes the view (`View.set_code`).

A view may be read as one of fewer fields: the words of the first fields are the same, whatever follows. So one compiled engine serves the
states of all policies, which differ in their last field only.
"""

from __future__ import annotations

from copy import copy
from functools import cache
from operator import getitem, setitem
from typing import Any, NamedTuple, TypeVar

import numba as nb
import numba.extending
import numba.np.arrayobj as array_lowering
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate

__all__ = ["View", "ViewType", "Views", "address_of", "by_reference", "call_code", "view_at"]

_WORD = ir.IntType(64)
_ByReference = TypeVar("_ByReference", bound=type)
_by_reference: set[type] = set()
_array_types: dict[tuple[Any, ...], Any] = {}
_type_of: Any = nb.typeof
arrayobj: Any = array_lowering
tools: Any = cgutils
extend: Any = numba.extending
_Tuple: Any = nb.types.BaseTuple


def by_reference(cls: _ByReference) -> _ByReference:
    """Marks a class of named tuples of which compiled functions use the fields by name only."""
    _by_reference.add(cls)
    return cls


class Field(NamedTuple):
    """Where a field of a view is, and of which type."""

    type: Any
    place: int  # its first word


class Column(nb.types.Array):
    """The numba type of an array in a view: no index is negative. `steps` are its strides if they are known to the compiler."""

    def __init__(self, array: Any, strides: tuple[int, ...]) -> None:
        self.steps = strides if array.ndim == 1 else ()
        name = f"column{self.steps or array.ndim}({array.dtype}, {array.layout}{'' if array.mutable else ', readonly'})"
        super().__init__(array.dtype, array.ndim, array.layout, not array.mutable, name, array.aligned)

    @property
    def key(self) -> Any:
        """What tells two types apart."""
        return self.name


class ViewType(nb.types.Type):
    """The numba type of a view: the names and types of its fields."""

    def __init__(self, name: str, types: tuple[tuple[str, Any], ...]) -> None:
        self.class_name, self.types, self.fields, place = name, types, {}, 1
        for field, type in types:
            self.fields[field] = Field(type, place)
            place += _words(type)
        super().__init__(f"{name}({', '.join(f'{field}: {type}' for field, type in types)})")


@cache
def _view_type(name: str, types: tuple[tuple[str, Any], ...]) -> ViewType:
    return ViewType(name, types)


def _words(of: Any) -> int:
    """How many words a value of this type takes."""
    if isinstance(of, nb.types.Array):
        return 1 + 2 * of.ndim
    if isinstance(of, _Tuple):
        return sum(_words(one) for one in of.types)
    return 0 if isinstance(of, nb.types.NoneType) else 1


class View:
    """The words of a named tuple, and all that they point to."""

    def __init__(self, record: Any, *, negative: bool = False, **more: Any) -> None:
        """`more`: fields before those of the record. `negative`: an index of an array may count from its end."""
        fields = {**more, **record._asdict()}
        items = [(name, _item(value, negative)) for name, value in fields.items()]
        self.type = _view_type(type(record).__qualname__, tuple((name, one[0]) for name, one in items))
        self.record, self.more, self.inner = record, more, [one[2] for _, one in items]
        self.words = np.array([0, *(word for _, one in items for word in one[1])], dtype=np.int64)
        self.address = address_of(self.words)
        self._shorter: View | None = None
        self._function: Any = None

    def set_code(self, function: Any) -> None:
        """Compiles a function of numba for this view, `function(view) -> float`, and puts its address into word 0, for `call_code`."""
        if function is self._function:
            return
        if (self.type,) not in function.overloads:
            function.compile((self.type,))
        code = function.overloads[(self.type,)]
        if code.signature.return_type != nb.types.float64:
            raise TypeError(f"{function.__name__} returns {code.signature.return_type}, not a float")
        self.words[0], self._function = code.library.get_pointer_to_function(code.fndesc.llvm_func_name), function

    def without(self, last: str) -> View:
        """The same words, read as those of a view that does not have the last field."""
        if self._shorter is None:
            *types, dropped = self.type.types
            if dropped[0] != last:
                raise TypeError(f"the last field is {dropped[0]}, not {last}")
            self._shorter = copy(self)
            self._shorter.type = _view_type(self.type.class_name, tuple(types))
        return self._shorter


class Views:
    """The views of some named tuples, one for each class, made anew when another named tuple takes the place of the first."""

    def __init__(self, *, negative: bool = False) -> None:
        self._known: dict[type, View] = {}
        self._negative = negative

    def of(self, record: Any, **more: Any) -> View:
        """The view of a named tuple; `more` as for `View`."""
        view = self._known.get(type(record))
        if view is None or view.record is not record:
            view = self._known[type(record)] = View(record, negative=self._negative, **more)
        return view


def _item(value: Any, negative: bool) -> tuple[Any, list[int], Any]:
    """The type of a value, its words, and what they point to."""
    if isinstance(value, np.ndarray):
        return _array_type(value, negative), [address_of(value), *value.shape, *value.strides], None
    if type(value) in _by_reference:
        view = View(value, negative=negative)
        return view.type, [view.address], view
    if isinstance(value, bool | int | np.bool_ | np.integer):
        return _type_of(value), [int(value)], None
    if isinstance(value, float | np.floating):
        return nb.types.float64, [int(np.float64(value).view(np.int64))], None
    if value is None:
        return nb.types.none, [], None
    if isinstance(value, tuple):
        items = [_item(one, True) for one in value]
        if not any(isinstance(one[0], ViewType) for one in items):
            return _type_of(value), [word for one in items for word in one[1]], [one[2] for one in items]
    raise TypeError(f"a view has no words for {value!r}")


def _array_type(array: np.ndarray[Any, Any], negative: bool) -> Any:
    """The type of an array in a view. Numba takes long to find it, and a short simulation makes hundreds of views of few types."""
    flags = array.flags
    strides = () if negative or array.ndim != 1 else array.strides
    key = array.dtype, array.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned, strides, negative
    if key not in _array_types:
        _array_types[key] = _type_of(array) if negative else Column(_type_of(array), array.strides)
    return _array_types[key]


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Where the first entry of an array is in memory."""
    return int(array.__array_interface__["data"][0])


# ------------------------------------------------------------------------------------------------------------------ in compiled code


@extend.register_model(ViewType)
class _Model(models.OpaqueModel):
    """In compiled code a view is an address."""


extend.register_model(Column)(models.ArrayModel)


@extend.typeof_impl.register(View)
def _type_of_view(value: View, context: Any) -> ViewType:
    return value.type


@extend.unbox(ViewType)
def _address_of_view(type: ViewType, value: Any, c: Any) -> Any:
    address = c.pyapi.object_getattr_string(value, "address")
    pointer = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    native: Any = nb.core.pythonapi.NativeValue
    return native(pointer, is_error=tools.is_not_null(c.builder, c.pyapi.err_occurred()))


@extend.infer_getattr
class _Fields(AttributeTemplate):
    key = ViewType

    def generic_resolve(self, type: Any, name: str) -> Any:  # type: ignore[override]
        return type.fields[name].type if name in type.fields else None


@extend.lower_getattr_generic(ViewType)
def _read_field(context: Any, builder: Any, type: ViewType, view: Any, name: str) -> Any:
    field = type.fields[name]
    return _read(context, builder, field.type, _pointer(builder, view), field.place)[0]


def _pointer(builder: Any, view: Any) -> Any:
    return builder.bitcast(view, _WORD.as_pointer())


def _read(context: Any, builder: Any, type: Any, words: Any, place: int) -> tuple[Any, int]:
    """The value of a type from its words, and the place behind them."""
    if isinstance(type, nb.types.Array):
        address, *numbers = [_word(builder, words, place + k) for k in range(_words(type))]
        if isinstance(type, Column):
            numbers[type.ndim :] = [context.get_constant(nb.types.intp, step) for step in type.steps] or numbers[type.ndim :]
        array = context.make_array(type)(context, builder)
        size = context.get_constant(nb.types.intp, context.get_abi_sizeof(context.get_data_type(type.dtype)))
        data = builder.inttoptr(address, context.get_data_type(type.dtype).as_pointer())
        context.populate_array(array, data=data, shape=numbers[: type.ndim], strides=numbers[type.ndim :], itemsize=size, meminfo=None)
        return array._getvalue(), place + _words(type)
    if isinstance(type, _Tuple):
        items = []
        for one in type.types:
            item, place = _read(context, builder, one, words, place)
            items.append(item)
        return context.make_tuple(builder, type, items), place
    if isinstance(type, nb.types.NoneType):
        return context.get_dummy_value(), place
    word = _word(builder, words, place)
    if isinstance(type, ViewType):
        return builder.inttoptr(word, ir.IntType(8).as_pointer()), place + 1
    if isinstance(type, nb.types.Float):
        return builder.bitcast(word, ir.DoubleType()), place + 1
    return context.cast(builder, word, nb.types.int64, type), place + 1


def _entry(context: Any, builder: Any, type: Column, array: Any, index_types: Any, indices: Any) -> Any:
    """The address of an entry, without a look at whether an index is negative, which takes a tenth of the time of a simulation."""
    places = [context.cast(builder, one, kind, nb.types.intp) for kind, one in zip(index_types, indices, strict=True)]
    return tools.get_item_pointer(context, builder, type, context.make_array(type)(context, builder, array), places, wraparound=False)


@extend.lower_builtin(getitem, Column, nb.types.Integer)
def _get(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    type, index = signature.args
    if type.ndim != 1:
        return arrayobj.getitem_arraynd_intp(context, builder, signature, arguments)
    return arrayobj.load_item(context, builder, type, _entry(context, builder, type, arguments[0], [index], arguments[1:]))


@extend.lower_builtin(getitem, Column, nb.types.BaseTuple)
def _get_several(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    type, index = signature.args
    if len(index) != type.ndim or not all(isinstance(one, nb.types.Integer) for one in index):
        return arrayobj.getitem_array_tuple(context, builder, signature, arguments)
    indices = tools.unpack_tuple(builder, arguments[1])
    return arrayobj.load_item(context, builder, type, _entry(context, builder, type, arguments[0], index, indices))


@extend.lower_builtin(setitem, Column, nb.types.Integer, nb.types.Any)
def _set(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    type, index, value = signature.args
    if type.ndim != 1:
        return arrayobj.setitem_array(context, builder, signature, arguments)
    place = _entry(context, builder, type, arguments[0], [index], arguments[1:2])
    arrayobj.store_item(context, builder, type, context.cast(builder, arguments[2], value, type.dtype), place)
    return context.get_dummy_value()


@extend.lower_builtin(setitem, Column, nb.types.BaseTuple, nb.types.Any)
def _set_several(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    type, index, value = signature.args
    if len(index) != type.ndim or not all(isinstance(one, nb.types.Integer) for one in index):
        return arrayobj.setitem_array(context, builder, signature, arguments)
    place = _entry(context, builder, type, arguments[0], index, tools.unpack_tuple(builder, arguments[1]))
    arrayobj.store_item(context, builder, type, context.cast(builder, arguments[2], value, type.dtype), place)
    return context.get_dummy_value()


def _word(builder: Any, words: Any, place: int) -> Any:
    """Reads a word. It does not change while compiled code runs, so that the compiler may keep it."""
    value = builder.load(builder.gep(words, [_WORD(place)]))
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


@extend.intrinsic
def call_code(typing_context: Any, view: Any) -> Any:
    """Calls the function in word 0 of a view, compiled by numba for a view that begins like this one: `function(view) -> float`."""
    result = nb.types.float64

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        calling = context.call_conv
        pointer = calling.get_function_type(result, signature.args).as_pointer()
        function = builder.inttoptr(_word(builder, _pointer(builder, arguments[0]), 0), pointer)
        status, returned = calling.call_function(builder, function, result, signature.args, arguments)
        with tools.if_unlikely(builder, status.is_error):
            calling.return_status_propagate(builder, status)
        return returned

    return result(view), generate


@extend.intrinsic
def view_at(typing_context: Any, like: Any, address: Any) -> Any:
    """The view whose words are at an address, of the same type as the view `like`."""
    if not isinstance(like, ViewType) or not isinstance(address, nb.types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = context.cast(builder, arguments[1], address, nb.types.int64)
        return builder.inttoptr(word, ir.IntType(8).as_pointer())

    return like(like, address), generate
