"""Policies as plain frozen data; save and load as JSON."""

from rota.policy.files import policy_from_json, policy_to_json, read_policy, save_policy
from rota.policy.msr import MSR, EmptySlots, Opening, Route, is_strongly_connected, stationary_law
from rota.policy.others import EASY, FCFS, Custom, FirstFit, MaxWeight, RandomizedTimers, ServerFilling

Policy = FCFS | FirstFit | EASY | ServerFilling | MaxWeight | RandomizedTimers | MSR | Custom

__all__ = [
    "EASY",
    "FCFS",
    "MSR",
    "Custom",
    "EmptySlots",
    "FirstFit",
    "MaxWeight",
    "Opening",
    "Policy",
    "RandomizedTimers",
    "Route",
    "ServerFilling",
    "is_strongly_connected",
    "policy_from_json",
    "policy_to_json",
    "read_policy",
    "save_policy",
    "stationary_law",
]
