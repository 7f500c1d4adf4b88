"""Charts: from tables and Rota's objects to pictures, with one definition each for HTML, SVG, PNG, PDF and the notebook."""

from rota.report.against import queue_against_setup_rate, queue_against_switching_rate, response_times_against_load
from rota.report.distributions import (
    ccdf_table,
    queue_length_distribution,
    queue_length_table,
    response_time_ccdf,
    simulated_queue_lengths,
)
from rota.report.export import flat_table, latex_table, pandas_table, save_table
from rota.report.fleet_charts import fleet_schedules, fleet_split, means_against_servers
from rota.report.fleet_page import fleet_plan_html
from rota.report.packing import schedule_table, schedules
from rota.report.page import plan_html
from rota.report.region import capacity_region, region_corners, region_points
from rota.report.save import chart_html, chart_script, library_script, save_chart
from rota.report.states import process_graph
from rota.report.style import below, beside, policy_colour, type_colour
from rota.report.tables import load_table, setup_rate_table, switching_rate_table
from rota.report.timeline import Watched, gantt, gantt_table, watch

__all__ = [
    "Watched",
    "below",
    "beside",
    "capacity_region",
    "ccdf_table",
    "chart_html",
    "chart_script",
    "flat_table",
    "fleet_plan_html",
    "fleet_schedules",
    "fleet_split",
    "gantt",
    "gantt_table",
    "latex_table",
    "library_script",
    "load_table",
    "means_against_servers",
    "pandas_table",
    "plan_html",
    "policy_colour",
    "process_graph",
    "queue_against_setup_rate",
    "queue_against_switching_rate",
    "queue_length_distribution",
    "queue_length_table",
    "region_corners",
    "region_points",
    "response_time_ccdf",
    "response_times_against_load",
    "save_chart",
    "save_table",
    "schedule_table",
    "schedules",
    "setup_rate_table",
    "simulated_queue_lengths",
    "switching_rate_table",
    "type_colour",
    "watch",
]
