"""Threads that Python does not know may still end a wait (W2)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import Any

import pytest

Child = Callable[..., Any]

pytestmark = [
    pytest.mark.needs("stalls"),
    pytest.mark.skipif(sys.platform != "linux", reason="other systems do not list their threads"),
]

# A timer of the C library whose function runs on a thread that has run no Python before.
TIMER = """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)

def after(seconds, function):
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    call = kind(lambda _: function())
    event = ctypes.create_string_buffer(struct.pack("@qiiQQ", 0, 0, 2, ctypes.cast(call, ctypes.c_void_p).value, 0), 64)
    timer = ctypes.c_void_p()
    assert libc.timer_create(1, event, ctypes.byref(timer)) == 0
    when = struct.pack("@qqqq", 0, 0, int(seconds), int(seconds % 1 * 1e9))
    assert libc.timer_settime(timer, 0, ctypes.create_string_buffer(when), None) == 0
    return call
"""

# A native thread that sleeps, and runs no Python at all. The runtime may start threads of its own meanwhile: its
# number is that of the thread that bears its name.
SLEEPER = """
import ctypes, os
libc = ctypes.CDLL(None)

def name(number):
    try:
        with open(f"/proc/self/task/{number}/comm") as comm:
            return comm.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None  # it has ended

def sleeper(seconds):
    thread = ctypes.c_ulong()
    run = ctypes.cast(libc.usleep, ctypes.c_void_p)
    assert libc.pthread_create(ctypes.byref(thread), None, run, ctypes.c_void_p(int(seconds * 1e6))) == 0
    assert libc.pthread_setname_np(thread, b"test sleeper") == 0
    (number,) = (number for number in os.listdir("/proc/self/task") if name(number) == "test sleeper")
    return number
"""


# A thread of a library that calls Python, sleeps without Python, and calls it again.
LIBRARY = """
import ctypes, os, subprocess
with open("library.c", "w") as source:
    source.write('''
    #include <pthread.h>
    #include <unistd.h>
    typedef void call(void);
    static call *first, *last;
    static void *run(void *unused) { first(); usleep(1400000); last(); return unused; }
    void begin(call *f, call *l) { pthread_t t; first = f; last = l; pthread_create(&t, 0, run, 0); }
    ''')
subprocess.run(["cc", "-shared", "-fPIC", "-pthread", "-o", "library.so", "library.c"], check=True)
library = ctypes.CDLL(os.path.abspath("library.so"))
kind = ctypes.CFUNCTYPE(None)

def begin(first, last):
    kept = kind(first), kind(last)
    library.begin(*kept)
    return kept
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("wait", ["s.synchronize()", "done.wait()"])
def test_W2_a_thread_of_a_library_that_has_enqueued_work_before(child: Child, wait: str) -> None:
    done = child(
        LIBRARY
        + f"""
import threading
import halstream as hs
s, called, done = hs.Stream(), threading.Event(), threading.Event()
gate = hs.testing.Gate(s)
s.call(done.set)
def first():
    s.nop()  # from here on the runtime knows the thread
    called.set()
kept = begin(first, gate.open)
called.wait()
{wait}
print("done")
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def test_W2_a_timer_of_the_c_library_still_ends_a_wait(child: Child) -> None:
    done = child(
        TIMER
        + """
import halstream as hs
s = hs.Stream()
gate = hs.testing.Gate(s)
kept = after(1.5, gate.open)
s.synchronize()
print("done")
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def test_W2_a_wait_is_not_failed_while_a_native_thread_sleeps(child: Child) -> None:
    done = child(
        "import halstream as hs\ns = hs.Stream()\ngate = hs.testing.Gate(s)\ns.query()\n"
        + SLEEPER
        + """
number = sleeper(1.5)
try:
    s.synchronize()
except hs.StallError:
    assert not os.path.exists(f"/proc/self/task/{number}"), "it could still have acted"
    print("failed when nobody was left")
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "failed when nobody was left\n"


def test_W1_a_wait_that_only_native_threads_could_end_is_warned_of(child: Child) -> None:
    done = child(
        "import halstream as hs\ns = hs.Stream()\ngate = hs.testing.Gate(s)\ns.query()\n"
        + SLEEPER
        + """
number = sleeper(30)
try:
    s.synchronize()
except RuntimeWarning as exc:
    assert number in str(exc) and "gate" in str(exc), exc
    print("warned", flush=True)
gate.open()
s.synchronize()
os._exit(0)
"""
    )
    assert done.stdout.startswith("warned"), done.stderr


def test_W1_threads_that_a_library_started_for_itself_cannot_end_a_wait(child: Child) -> None:
    done = child(
        "import halstream as hs\ns = hs.Stream()\ngate = hs.testing.Gate(s)\ns.query()\n"
        + SLEEPER
        + """
from halstream._stalls.bystanders import is_bystander, library_threads
with library_threads():
    number = sleeper(30)
assert is_bystander(int(number)) and not is_bystander(os.getpid())
try:
    s.synchronize()
except hs.StallError as exc:
    assert "gate" in str(exc)
    print("found")
gate.open()
s.synchronize()
print("through", flush=True)
os._exit(0)
"""
    )
    assert done.stdout.split() == ["found", "through"], done.stderr


def test_W1_idle_threads_of_libraries_and_watchdogs_cannot_end_a_wait(child: Child) -> None:
    done = child(
        """
        import faulthandler
        faulthandler.dump_traceback_later(25, exit=True)
        import numpy as np
        import halstream as hs
        np.ones((400, 400)) @ np.ones((400, 400))  # its threads wait for the next product
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        try:
            s.synchronize()
        except hs.StallError as exc:
            assert "gate" in str(exc)
        else:
            raise SystemExit("not found")
        """
    )
    assert done.returncode == 0, done.stderr
