"""Simulation of fleets: the state of many servers, dispatch rules, the engine, and what is measured by kind of server."""
