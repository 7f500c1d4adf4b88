"""Traces: readers for real logs, grouping into job types, thinning, synthesis."""

from rota.traces.files import is_trace_file, open_trace, save_trace
from rota.traces.importing import ImportReport, import_trace, read_trace
from rota.traces.trace import Looped, Trace

__all__ = ["ImportReport", "Looped", "Trace", "import_trace", "is_trace_file", "open_trace", "read_trace", "save_trace"]
