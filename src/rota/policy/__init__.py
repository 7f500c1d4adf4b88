"""Policies as plain frozen data; save and load as JSON."""

from rota.policy.files import policy_from_json, policy_to_json, read_policy, save_policy
from rota.policy.msr import MSR, EmptySlots, Opening, Route, is_strongly_connected, stationary_law

__all__ = [
    "MSR",
    "EmptySlots",
    "Opening",
    "Route",
    "is_strongly_connected",
    "policy_from_json",
    "policy_to_json",
    "read_policy",
    "save_policy",
    "stationary_law",
]
