"""Benchmarks: each prints ratios against named peers measured in the same run. `make bench` runs them all."""
