"""The paper's figures redrawn: the tables of `rota.study.reproduce` as pictures, texts and one page that shows them all."""

from rota.report.reproduced.charts import charts_of
from rota.report.reproduced.folder import Done, redraw

__all__ = ["Done", "charts_of", "redraw"]
