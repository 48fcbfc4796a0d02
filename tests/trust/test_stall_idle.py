"""W5: what a process that uses the runtime does while nothing is pending."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Child = Callable[..., subprocess.CompletedProcess[str]]

IDLE = """
import os, sys, threading, time
import halstream as hs

def wakes():
    count = 0
    for thread in os.listdir("/proc/self/task"):
        if int(thread) != threading.main_thread().native_id:
            try:
                with open(f"/proc/self/task/{thread}/status") as status:
                    lines = [line for line in status if line.startswith("voluntary_ctxt_switches")]
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            count += int(lines[0].split()[1])
    return count

stream = hs.Stream()
x = hs.empty(8)
x.fill(1, stream)
stream.call(lambda: None)
stream.synchronize()
end = time.monotonic() + 20
while time.monotonic() < end:  # what has just worked looks for more for a while
    before = wakes()
    time.sleep(1)
    if wakes() == before:
        break
else:
    sys.exit("some thread is woken up each second")
x.fill(2, stream)
stream.synchronize()
"""


@pytest.mark.usefixtures("backend")
def test_W5_no_thread_of_an_idle_process_is_woken_up(child: Child) -> None:
    done = child(IDLE)
    assert (done.returncode, done.stderr) == (0, "")
