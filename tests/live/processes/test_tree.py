"""Signals to all processes below one, and to no other."""

import os
import subprocess
import sys

import pytest

from rota.live.processes import tree

# A supervisor with two children: one is still in its group, as between fork and setsid, the other has a session of its own and a child.
PROGRAM = """
import os, signal, subprocess, sys, time
from rota.live.processes import tree
os.setsid()
signal.signal(signal.SIGTERM, lambda *_: print("hit", flush=True))
near = subprocess.Popen(["sleep", "60"])
far = subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True)
while len(tree.descendants(os.getpid())) < 3:
    time.sleep(0.01)
if sys.argv[1] == "stop":
    tree.freeze(os.getpid())
    stopped = [os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1]) for child in (near, far)]
    print(stopped, flush=True)
    tree.send(os.getpid(), signal.SIGKILL)
else:
    tree.send(os.getpid(), getattr(signal, sys.argv[1]))
print([child.wait() for child in (near, far)])
"""


@pytest.mark.parametrize(("how", "said"), [("SIGTERM", ["[-15, -15]"]), ("SIGKILL", ["[-9, -9]"]), ("stop", ["[True, True]", "[-9, -9]"])])
def test_a_child_in_our_own_group(how, said):
    """It gets the signal by itself: its group is that of the supervisor, which is neither hit, stopped nor killed."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, encoding="utf-8", timeout=30, check=True)
    assert done.stdout.splitlines() == said


def test_children_are_found_either_way() -> None:
    """The kernel's list of children and the look at every process agree."""
    here = os.getpid()
    with os.popen("sleep 5 & echo $!; wait") as pipe:
        sleeper = int(pipe.readline())
        by_scan = tree._scan()
        level = by_scan(here)
        assert sleeper in {child for one in level for child in [one, *by_scan(one)]}
        assert sleeper in tree.descendants(here)
        os.kill(sleeper, 15)
