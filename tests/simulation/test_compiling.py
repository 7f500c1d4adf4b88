"""Whether an engine is still to be compiled is known before it runs."""

import subprocess
import sys

PROGRAM = """
import numpy as np, rota
from rota.decide import decider_of
from rota.simulation.compiled import will_compile
from rota.simulation.run import Run

system = rota.System([1], [[1]], [0.5], [1.0])
run = Run(system, decider_of(system, rota.FCFS()), np.random.SeedSequence(0), batch_jobs=100)
before = will_compile(run.engine)
rota.simulate(system, "fcfs", jobs=100)
print(before, will_compile(run.engine))
"""


def test_what_is_on_disk_is_not_compiled_again(tmp_path, monkeypatch):
    """With an empty cache the first process is told that it compiles, and the next one that it does not."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    said = [subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    assert said == [["True", "False"], ["False", "False"]]
