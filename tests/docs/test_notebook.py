"""The notebooks in docs/ run, and hold the outputs that their cells give.

A cell is run as Jupyter does it: its last expression, if it is one, shows itself. With `make console` in place of the tests the outputs are
written anew: read the difference before you keep it.
"""

import ast
import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted(path for path in (ROOT / "docs").rglob("*.ipynb") if "_build" not in path.parts)


def shown(value: Any) -> dict[str, str]:
    """What an object shows of itself, by kind."""
    if hasattr(value, "_repr_mimebundle_"):
        return dict(value._repr_mimebundle_())
    return {"text/html": value._repr_html_(), "text/plain": repr(value)}


def run(source: str, names: dict[str, Any]) -> dict[str, str] | None:
    """Runs a cell; what its last expression shows, if it ends in one."""
    *rest, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module([*rest, last], []), "<cell>", "exec"), names)
        return None
    exec(compile(ast.Module(rest, []), "<cell>", "exec"), names)
    return shown(eval(compile(ast.Expression(last.value), "<cell>", "eval"), names))


def comparable(bundle: dict[str, str] | None) -> dict[str, Any]:
    """What a reader sees. Of pictures the words and numbers in them: where exactly they stand depends on the fonts of the machine.

    The plain text is for where HTML cannot be shown, and may have the speed of the machine in it.
    """
    seen = {kind: text for kind, text in (bundle or {}).items() if kind != "text/plain"}
    return {kind: list(ElementTree.fromstring(text).itertext()) if kind == "image/svg+xml" else text for kind, text in seen.items()}


def stored(cell: dict[str, Any]) -> dict[str, str] | None:
    """The output that a notebook holds for a cell."""
    if not cell["outputs"]:
        return None
    (output,) = cell["outputs"]
    return {kind: "".join(text) for kind, text in output["data"].items()}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_holds_what_its_cells_give(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the cells one after the other, in the notebook's folder."""
    monkeypatch.chdir(path.parent)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    with alt.renderers.enable("default"):  # whatever a cell chooses ends with the notebook
        for number, cell in enumerate(cells, 1):
            fresh = run("".join(cell["source"]), names)
            if os.environ.get("ROTA_RENEW_CONSOLE"):
                data = {kind: text.splitlines(keepends=True) for kind, text in (fresh or {}).items()}
                output = {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}
                cell |= {"execution_count": number, "outputs": [output] if fresh else []}
            else:
                assert comparable(fresh) == comparable(stored(cell)), f"cell {number} of {path.name} shows something else"
    if os.environ.get("ROTA_RENEW_CONSOLE"):
        path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def test_there_is_a_notebook() -> None:
    """The documentation has one to start from."""
    assert NOTEBOOKS
