"""The charts in a page."""

import json
import re

import altair

_CHART = re.compile(r'vegaEmbed\("#([\w-]+)", (\{.*?\}), \{"mode": "vega-lite"')


def valid_charts(page: str) -> list[str]:
    """The names of the charts in a page; raises if one of them is not valid."""
    found = _CHART.findall(page)
    for _, text in found:
        altair.Chart.from_dict(json.loads(text.replace("<\\/", "</")), validate=True)
    return [name for name, _ in found]
