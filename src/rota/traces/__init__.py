"""Traces: readers for real logs, grouping into job types, thinning, synthesis."""

from rota.traces.files import is_trace_file, open_trace, save_trace
from rota.traces.trace import Looped, Trace

__all__ = ["Looped", "Trace", "is_trace_file", "open_trace", "save_trace"]
