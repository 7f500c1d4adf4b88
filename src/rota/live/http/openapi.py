"""What /openapi.json has besides the successful answers: every error of an address, the body that is not read by FastAPI, and the token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from rota.live.messages import ChangeRequest, JobRequest

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["Answers", "complete_openapi"]


class Failure(BaseModel):
    """What was wrong, as text."""

    error: str


class Answers:
    """The answers of an address besides the successful one, for its description."""

    _WORDS: Mapping[int, str] = {
        400: "not HTTP, or not JSON",
        401: "no token, or a wrong one",
        403: "a request from a web page, or to another host",
        404: "no such job or plan",
        409: "not possible in the present state",
        413: "the body is too large",
        415: "the body is not application/json",
        422: "a value breaks a rule",
        500: "an error of the scheduler; its log has more",
        503: "the scheduler is stopping",
        507: "the disk is full",
    }

    def __init__(self, trusted: bool) -> None:
        self._always = (400, 422, 500) if trusted else (400, 401, 403, 422, 500)

    def __call__(self, *statuses: int, text: str = "", log: bool = False) -> dict[int | str, dict[str, Any]]:
        """These statuses and those of every address. `text`: the media type of a successful answer that is text; `log`: it is output."""
        found: dict[int | str, dict[str, Any]] = {
            status: {"model": Failure, "description": self._WORDS[status]} for status in sorted({*self._always, *statuses})
        }
        if text:
            found[200] = {"description": "text", "content": {text: {"schema": {"type": "string"}}}}
        if log:
            found[200] = {
                "description": "the part of the output",
                "headers": {
                    "Rota-Next-Offset": {"required": True, "schema": {"type": "integer"}, "description": "offset of the next part"},
                    "Rota-Ended": {"required": True, "schema": {"enum": ["true", "false"]}, "description": "if the output is complete"},
                },
                "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            }
        return found


def complete_openapi(app: FastAPI, trusted: bool) -> None:
    """Adds what FastAPI does not know: the body that it does not read, and the token."""
    described = app.openapi()
    components = described.setdefault("components", {})
    components.setdefault("schemas", {}).update({message.__name__: message.model_json_schema() for message in (JobRequest, ChangeRequest)})
    if not trusted:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"token": []}]
