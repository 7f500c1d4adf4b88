"""Policies as plain frozen data, each with one record from which all lists of policies derive; save and load as JSON."""

from rota.policy.adaptive import Adaptive
from rota.policy.codec import policy_from_dict, policy_to_dict
from rota.policy.custom import Custom
from rota.policy.designed import DESIGNED_NAMES, design_named, register_designed
from rota.policy.files import policy_from_json, policy_to_json, read_policy, save_policy
from rota.policy.fleet_files import FleetDesign, fleet_policy_from_dict, fleet_policy_to_dict, read_fleet_policy, save_fleet_policy
from rota.policy.fleet_plan_file import FleetPlanFile, fleet_plan_file_from_json, fleet_plan_file_to_json, read_fleet_plan_file
from rota.policy.improved import Improved
from rota.policy.lookup import as_policies, as_policy
from rota.policy.msr import MSR, EmptySlots, Opening, Route, is_strongly_connected, msr_name, repeats_itself, stationary_law
from rota.policy.partly_pinned import PartlyPinned
from rota.policy.pinned import Pinned
from rota.policy.plan_file import PlanFile, plan_file_from_json, plan_file_to_json, read_plan_file
from rota.policy.queue_order import EASY, FCFS, FirstFit, ServerFilling
from rota.policy.registry import POLICY_NAMES, Policy, Record, draws, policy_name, preempts, record_named, record_of, records, register
from rota.policy.server_needs import BalancedSplitting, CMuM, MostServersFirst, Quickswap
from rota.policy.split import Split
from rota.policy.table import Tabulated
from rota.policy.weights import MaxWeight, RandomizedTimers, StallingMaxWeight

__all__ = [
    "DESIGNED_NAMES",
    "EASY",
    "FCFS",
    "MSR",
    "POLICY_NAMES",
    "Adaptive",
    "BalancedSplitting",
    "CMuM",
    "Custom",
    "EmptySlots",
    "FirstFit",
    "FleetDesign",
    "FleetPlanFile",
    "Improved",
    "MaxWeight",
    "MostServersFirst",
    "Opening",
    "PartlyPinned",
    "Pinned",
    "PlanFile",
    "Policy",
    "Quickswap",
    "RandomizedTimers",
    "Record",
    "Route",
    "ServerFilling",
    "Split",
    "StallingMaxWeight",
    "Tabulated",
    "as_policies",
    "as_policy",
    "design_named",
    "draws",
    "fleet_plan_file_from_json",
    "fleet_plan_file_to_json",
    "fleet_policy_from_dict",
    "fleet_policy_to_dict",
    "is_strongly_connected",
    "msr_name",
    "plan_file_from_json",
    "plan_file_to_json",
    "policy_from_dict",
    "policy_from_json",
    "policy_name",
    "policy_to_dict",
    "policy_to_json",
    "preempts",
    "read_fleet_plan_file",
    "read_fleet_policy",
    "read_plan_file",
    "read_policy",
    "record_named",
    "record_of",
    "records",
    "register",
    "register_designed",
    "repeats_itself",
    "save_fleet_policy",
    "save_policy",
    "stationary_law",
]
