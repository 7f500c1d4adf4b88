"""`rota schema`: the format of a system's file."""

from __future__ import annotations

import json as jsonlib


def schema() -> None:
    """Prints the JSON schema of a system's TOML file, for editors that complete and check it."""
    from rota.model import json_schema

    print(jsonlib.dumps(json_schema(), indent=2))
