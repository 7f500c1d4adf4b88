"""What sizes and arrival processes share as pydantic models: frozen, parameters by name, and problems in this project's words."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from rota.errors import BadSpec, Problem, problems_of

__all__ = ["Described"]


class Described(BaseModel):
    """A law that a table of a spec describes. `tag` is the field that names its kind; two are equal if all their fields are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tag: ClassVar[str]

    def __init__(self, /, *values: Any, **fields: Any) -> None:
        if values:
            names = ", ".join(f"{name}=…" for name in type(self).model_fields if name != self.tag)
            raise BadSpec([Problem(type(self).__name__, f"takes its parameters by name: {names}", values[0])])
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise BadSpec(problems_of(error), type(self).__name__) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # a spec is read without it, and reports where problems are

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Described):
            return NotImplemented
        return type(self) is type(other) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((type(self), self._fields()))

    def _fields(self) -> tuple[object, ...]:
        """The values that make the law; pydantic would compare cached arrays with them."""
        return tuple(getattr(self, name) for name in type(self).model_fields)

    def changed(self, **fields: Any) -> Self:
        """The same law with some fields changed."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | fields)
