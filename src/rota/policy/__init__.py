"""Policies as plain frozen data; save and load as JSON."""

from rota.policy.files import policy_from_json, policy_to_json, read_policy, save_policy
from rota.policy.msr import MSR, EmptySlots, Opening, Route, is_strongly_connected, repeats_itself, stationary_law
from rota.policy.others import EASY, FCFS, Custom, FirstFit, MaxWeight, RandomizedTimers, ServerFilling
from rota.policy.plan_file import PlanFile, plan_file_from_json, plan_file_to_json, read_plan_file

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
    "PlanFile",
    "Policy",
    "RandomizedTimers",
    "Route",
    "ServerFilling",
    "is_strongly_connected",
    "plan_file_from_json",
    "plan_file_to_json",
    "policy_from_json",
    "policy_to_json",
    "read_plan_file",
    "read_policy",
    "repeats_itself",
    "save_policy",
    "stationary_law",
]
