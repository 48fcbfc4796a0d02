"""Python's lock and calls of the driver: neither waits for the other."""

from __future__ import annotations

from typing import Any

import pytest
from cuda_help import Program

HEAD = """
import gc, os, signal, sys, threading, time
import numpy as np
import halstream as hs
from halstream import _memory
from halstream.testing import Gate
from look_alike import LIMIT, PTX, Driver, error, fault, until

driver = Driver()
kernel = hs.Kernel(PTX, name="fill_u32", signature="out uint32 *x, uint32 v, uint32 n")
x, y = hs.zeros(64, np.uint32), hs.zeros(64, np.uint32)
pinned = hs.pinned_empty(64, np.uint32)
s, t = hs.Stream(), hs.Stream()
s.launch(kernel, 1, 64, x, 1, 64)
s.delay(0.0001)
event = s.record()
hs.synchronize(timeout=LIMIT)
"""


def test_a_full_launch_queue_stops_only_the_thread_that_enqueues(run_program: Program) -> None:
    done = run_program(
        HEAD
        + """
ways = {
    "nop": s.nop, "record": lambda: event.record(s), "call": lambda: s.call(int),
    "copy": lambda: x.copy_from(pinned, s), "fill": lambda: x.fill(1, s),
    "pageable": lambda: x.copy_from(np.zeros(64, np.uint32), s), "launch": lambda: s.launch(kernel, 1, 64, x, 1, 64),
    "delay": lambda: s.delay(1e-6), "other way": lambda: t.wait_stream(s), "new": lambda: hs.Event().record(s),
}
for name, way in ways.items():
    gate, done = Gate(s), []
    def fill_queue():
        for _ in range(40):
            way()
            done.append(1)
    thread = threading.Thread(target=fill_queue, daemon=True)
    thread.start()
    until(lambda: len(done) >= 2, name)  # the lock is free: this thread runs
    # Until it stays inside a call.
    before = -1
    while len(done) != before:
        before = len(done)
        time.sleep(0.05)
    assert len(done) < 40, (name, len(done))
    u, ran = hs.Stream(), []
    u.call(ran.append, 1)
    u.synchronize(timeout=LIMIT)
    gate.open()
    thread.join(LIMIT)
    assert not thread.is_alive() and len(done) == 40, (name, len(done))
    hs.synchronize(timeout=LIMIT)
""",
        FAKECUDA_QUEUE="8",
    )
    assert done.stderr == ""


def test_a_function_on_another_stream_opens_the_gate_of_a_full_queue(run_program: Program) -> None:
    run_program(
        HEAD
        + """
gate = Gate(s)
t.delay(0.01)
t.call(gate.open)
for i in range(200):  # blocks this thread until the dispatcher has run, which needs the lock
    s.call(int)
    s.record(event)
s.synchronize(timeout=LIMIT)
""",
        FAKECUDA_QUEUE="8",
    )


def test_slow_calls_of_the_driver_let_other_threads_run(run_program: Program) -> None:
    run_program(
        HEAD
        + """
fresh = iter(range(100, 10**6))
def load():
    text = PTX + f"// {next(fresh)}"
    new = hs.Kernel(text, name="fill_u32", signature="out uint32 *x, uint32 v, uint32 n")
    s.launch(new, 1, 64, x, 1, 64)
ways = {
    "cuStreamCreateWithPriority": lambda: [hs.Stream() for _ in range(3)],  # closed ones are used again
    "cuStreamDestroy_v2": lambda: [stream.close() for stream in [hs.Stream() for _ in range(80)]],
    "cuEventRecord": lambda: event.record(s), "cuStreamWaitEvent": lambda: t.wait_event(event),
    "cuStreamBatchMemOp_v2": lambda: s.call(int), "cuLaunchKernelEx": lambda: s.launch(kernel, 1, 64, x, 1, 64),
    "cuMemAllocFromPoolAsync": lambda: hs.empty(next(fresh) << 20, np.uint8),
    "cuMemHostAlloc": lambda: hs.pinned_empty((4 << 20) + next(fresh)),
    "cuMemcpyHtoDAsync_v2": lambda: x.copy_from(pinned, s), "cuMemcpyDtoHAsync_v2": lambda: x.copy_to(pinned, s),
    "cuMemsetD32Async": lambda: x.fill(1, s), "cuModuleLoadDataEx": load, "cuMemGetInfo_v2": _memory.memory_info,
    "cuStreamQuery": lambda: (s.nop(), s.query()), "cuEventQuery": lambda: (event.record(s), event.query()),
}
for name, way in ways.items():
    driver.control(f"slow {name} 60000")
    before, turns = driver.count(name), 0
    thread = threading.Thread(target=way, daemon=True)
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    driver.control(f"slow {name} 0")
    hs.synchronize(timeout=LIMIT)
    assert driver.count(name) > before, name
    assert turns >= 5, (name, turns)
""",
        FAKECUDA_MEMORY=str(1 << 33),
    )


@pytest.mark.parametrize("memops", ["1", "0"])
def test_functions_on_streams_against_threads_that_wait(run_program: Program, memops: str) -> None:
    run_program(
        HEAD
        + """
stop, counts = threading.Event(), []
def wait(stream):
    while not stop.is_set():
        stream.synchronize(timeout=LIMIT)
        stream.query()
        hs.synchronize(timeout=LIMIT)
streams = [hs.Stream() for _ in range(3)]
threads = [threading.Thread(target=wait, args=(stream,), daemon=True) for stream in streams]
for thread in threads:
    thread.start()
sys.setswitchinterval(1e-5)
for i in range(300):
    for stream in streams:
        stream.call(counts.append, i)
    if i % 50 == 0:
        gc.collect()
for stream in streams:
    stream.synchronize(timeout=LIMIT)
stop.set()
for thread in threads:
    thread.join(LIMIT)
    assert not thread.is_alive()
assert len(counts) == 900
""",
        FAKECUDA_MEMOPS=memops,
        FAKECUDA_QUEUE="8",
    )


@pytest.mark.parametrize("settings", [{}, {"FAKECUDA_QUEUE": "8"}, {"FAKECUDA_MEMOPS": "0", "FAKECUDA_POOLS": "0"}])
def test_eight_threads_that_mix_everything(run_program: Program, settings: dict[str, Any]) -> None:
    done = run_program(
        HEAD
        + """
import random
sys.setswitchinterval(1e-5)
stop, failed, total = time.monotonic() + 1.0, [], []
shared = [hs.Stream(i % 2) for i in range(4)]
def mix(number):
    rng, ran, expected = random.Random(number), [], 0
    try:
        while time.monotonic() < stop:
            stream = rng.choice(shared) if rng.random() < 0.5 else hs.Stream(rng.randrange(2))
            a = hs.empty(rng.choice((10, 1000, 20000)), np.float32, device=stream.device)
            a.fill(number, stream)
            e = hs.Event(timing=rng.random() < 0.5)
            e.record(stream)
            rng.choice(shared).wait_event(e)
            rng.choice(shared).wait_stream(stream)
            for _ in range(rng.randrange(4)):
                stream.call(ran.append, 1)
                expected += 1
            if rng.random() < 0.2 and stream not in shared:  # others may fill the queue of a shared one
                with Gate(stream):
                    stream.call(ran.append, 1)
                    expected += 1
            what = rng.randrange(6)
            if what == 0:
                assert (a.numpy(stream) == number).all()
            elif what == 1:
                e.synchronize(timeout=LIMIT)
            elif what == 2:
                hs.synchronize(rng.randrange(2), timeout=LIMIT)
            elif what == 3:
                own = hs.Device(rng.randrange(2)).per_thread_stream
                own.call(ran.append, 1)
                expected += 1
            elif what == 4:
                stream.query(), e.query(), stream.describe()
            elif stream not in shared:
                stream.close()
        for device in (0, 1):
            hs.synchronize(device, timeout=LIMIT)
        until(lambda: len(ran) == expected, "all functions")
        total.append(expected)
    except BaseException as exc:
        failed.append(repr(exc))
        raise
threads = [threading.Thread(target=mix, args=(n,), daemon=True) for n in range(8)]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads) and time.monotonic() < stop + 2 * LIMIT:
    gc.collect()
    time.sleep(0.01)
assert not any(thread.is_alive() for thread in threads)
assert not failed, failed
assert len(total) == 8 and min(total) > 0, total
""",
        **settings,
    )
    assert done.stderr == ""


def test_ctrl_c_ends_a_wait_and_not_the_work(run_program: Program) -> None:
    run_program(
        HEAD
        + """
waits = {
    "stream": s.synchronize, "event": None, "device": hs.synchronize,
    "memory": lambda: x.copy_to(np.zeros(64, np.uint32), s),
    "limit": lambda: s.synchronize(timeout=1000),
}
for name, wait in waits.items():
    gate, ran, inside = Gate(s), [], threading.Event()
    s.call(ran.append, 1)
    late = s.record()
    wait = wait or late.synchronize
    def interrupt():
        inside.wait()
        time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    try:
        inside.set()
        wait()
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError(name)
    assert not s.query() and ran == [], name
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert ran == [1], name
"""
    )


def test_exit_drops_functions_that_are_held_and_reports_it(run_program: Program) -> None:
    done = run_program(
        HEAD
        + """
gate = Gate(s)
for _ in range(5):
    s.call(print, "must not run")
t.wait_stream(s)
t.call(print, "nor this")
keep = s, t, gate
sys.exit(3)
""",
        exit_code=3,
    )
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("halstream: ") and "pending" in line and int(line.split()[1]) >= 2, line


@pytest.mark.parametrize("where", ["slow call", "full queue", "wait"])
def test_exit_while_a_thread_is_inside_a_call(run_program: Program, where: str) -> None:
    done = run_program(
        HEAD
        + f"""
where, inside = {where!r}, threading.Event()
def stay():
    if where == "slow call":
        driver.control("slow cuEventRecord 3000000")
        inside.set()
        event.record(s)
    elif where == "wait":
        held = Gate(t)
        inside.set()
        t.synchronize()
    else:
        held = Gate(t)
        for _ in range(7):
            t.nop()
        inside.set()
        for _ in range(20):
            t.nop()
    print("came back")
threading.Thread(target=stay, daemon=True).start()
inside.wait()
time.sleep(0.05)
sys.exit(4)
""",
        exit_code=4,
        FAKECUDA_QUEUE="8",
    )
    assert "came back" not in done.stdout
    assert "Traceback" not in done.stderr and "Fatal" not in done.stderr, done.stderr


def test_threads_that_end_leave_nothing(run_program: Program) -> None:
    done = run_program(
        HEAD
        + """
ran = []
def work():
    own = hs.Device(0).per_thread_stream
    own.call(ran.append, 1)
    hs.zeros(1000, np.float32, stream=own).fill(1, own)
    hs.Event().record(own)
    # It ends with its work pending.
for _ in range(5):
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
until(lambda: len(ran) == 40, "the functions of threads that ended")
hs.synchronize(timeout=LIMIT)
del x, y, pinned, s, t, event, thread, threads
gc.collect()
assert hs.use_backend("host") == "host"
assert driver.live() == {}, driver.live()
"""
    )
    assert done.stderr == ""
