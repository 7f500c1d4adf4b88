"""Charts to files: HTML that needs no network, SVG, PNG, PDF and JSON, all from the same definition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rota.arguments import whole_file
from rota.errors import BadSpec, Problem

__all__ = ["FORMATS", "PAGE_POLICY", "chart_html", "chart_script", "library_script", "save_chart", "unchecked"]

FORMATS = ("html", "svg", "png", "pdf", "json")
_PPI = 144
_GLOBAL = "window.vegaEmbed = vegaEmbed; window.vega = vega; window.vegaLite = vegaLite;"
# What the browser may do with the page: run what stands in it (Vega compiles expressions), and load nothing from anywhere.
PAGE_POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:"


def save_chart(chart: Any, path: str | Path, *, title: str | None = None) -> Path:
    """Writes a chart; the extension decides the format. The folder is made if needed."""
    path = Path(path)
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise BadSpec([Problem("path", f"must end in {', '.join('.' + name for name in FORMATS)}", str(path))])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_rendered(chart, kind, title or path.stem))
    return path


def _rendered(chart: Any, kind: str, title: str) -> bytes:
    import vl_convert

    spec, drawn_in = chart.to_dict(), _version()
    match kind:
        case "html":
            return chart_html([chart], title).encode()
        case "svg":
            return str(vl_convert.vegalite_to_svg(spec, vl_version=drawn_in)).encode()
        case "png":
            return bytes(vl_convert.vegalite_to_png(spec, vl_version=drawn_in, ppi=_PPI, scale=1.0))
        case "pdf":
            return bytes(vl_convert.vegalite_to_pdf(spec, vl_version=drawn_in))
        case _:
            return json.dumps(spec, ensure_ascii=False, indent=1).encode()


def chart_html(charts: Sequence[Any], title: str) -> str:
    """A page with the charts, one below the other. The drawing library is in the page, and the page forbids network access."""
    places = "\n".join(f'<div class="chart"><div id="chart{k}"></div></div>' for k in range(len(charts)))
    drawing = "\n".join(chart_script(chart, f"chart{k}") for k, chart in enumerate(charts))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{PAGE_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>body {{ margin: 24px; background: white; }} .chart {{ margin-bottom: 36px; }}</style>
<script>{library_script()}</script>
</head>
<body>
{places}
<script>
{drawing}
</script>
</body>
</html>
"""


@contextmanager
def unchecked() -> Iterator[None]:
    """Within, and in a function that it decorates, altair does not check what charts are made of, which takes longer than to make them."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        yield


def chart_script(chart: Any, element: str) -> str:
    """What draws a chart into the element of this id, in a page that has the `library_script`."""
    spec = chart.to_dict(validate=False)  # of every chart of a page a test checks it
    spec.pop("$schema", None)  # an address, which the page must not load; the mode is given instead
    text = json.dumps(spec, ensure_ascii=False).replace("</", "<\\/")
    return f'vegaEmbed("#{element}", {text}, {{"mode": "vega-lite", "renderer": "svg", "actions": false}}).catch(console.error);'


@cache
def library_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, to stand once in a page.

    It takes a second or two to make, so it is kept where machine code is (`rota.kernel_cache`), if that can be written.
    """
    import vl_convert

    from rota.kernel_cache import folder_of
    from rota.simulation.compiled import shared_engine

    folder = folder_of(shared_engine())
    digest = sha256(f"{version('vl-convert-python')} {_version()} {_GLOBAL}".encode()).hexdigest()[:16]
    kept = None if folder is None else Path(folder, f"page-{digest}.js")
    with suppress(OSError, UnicodeDecodeError):
        if kept is not None:
            return kept.read_text(encoding="utf-8")
    script = str(vl_convert.javascript_bundle(_GLOBAL, _version())).replace("</script", "<\\/script")
    with suppress(OSError):
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(kept) as file:
                file.write_text(script, encoding="utf-8")
    return script


def _version() -> str:
    """The version of Vega-Lite that charts are written in, as the converter counts: "6.4"."""
    import altair as alt

    return str(alt.SCHEMA_VERSION).removeprefix("v").rpartition(".")[0]
