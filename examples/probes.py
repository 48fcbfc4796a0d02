"""Four questions that tell a stream runtime from a stand-in.

Each line says what a correct runtime must answer and what this one answered.
The exit code is not 0 when anything differs.
"""

from __future__ import annotations

import halstream as hs
from halstream.testing import Gate

LIMIT = 10.0  # seconds; a runtime that hangs answers "never"
ROUNDS = 200


def finished(stream: hs.Stream) -> object:
    """Return True once the stream is done, 'never' when it does not get there."""
    try:
        stream.synchronize(timeout=LIMIT)
    except hs.WaitTimeoutError:
        return "never"
    return stream.query()


def a_running_operation() -> list[object]:
    """Is a stream done while its operation of 300 ms runs, and after it?"""
    s = hs.Stream()
    s.delay(0.3)
    during = s.query()
    return [during, finished(s)]


def b_two_records() -> list[object]:
    """Is an event done between the ends of its two records, and after both?"""
    s = hs.Stream()
    event, passed = hs.Event(), hs.Event()
    first = Gate(s)
    s.record(event)
    s.record(passed)
    second = Gate(s)
    s.record(event)
    first.open()
    passed.synchronize(timeout=LIMIT)
    between = event.query()
    second.open()
    return [between, finished(s) is True and event.query()]


def c_wait_then_record_again() -> list[object]:
    """Is a waiter let go by the record it met, though the event was recorded again?"""
    source, waiter = hs.Stream(), hs.Stream()
    event = hs.Event()
    first = Gate(source)
    source.record(event)
    waiter.wait(event)
    second = Gate(source)
    source.record(event)
    held = waiter.query()
    first.open()
    let_go = finished(waiter)
    newer = event.query()
    second.open()
    return [held, let_go, newer, finished(source)]


def d_ping_pong() -> list[object]:
    """Does a game of two streams over one event end, and in order?"""
    one, other = hs.Stream(), hs.Stream()
    event = hs.Event()
    hits: list[int] = []
    for turn in range(ROUNDS):
        here, there = (one, other) if turn % 2 == 0 else (other, one)
        here.call(hits.append, turn)
        here.record(event)
        there.wait(event)
    return [finished(one), finished(other), hits == list(range(ROUNDS))]


PROBES = [
    ("A", a_running_operation, [False, True]),
    ("B", b_two_records, [False, True]),
    ("C", c_wait_then_record_again, [False, True, False, True]),
    ("D", d_ping_pong, [True, True, True]),
]


def main() -> int:
    """Ask all four; return the exit code."""
    wrong = 0
    for name, probe, right in PROBES:
        answer = probe()
        wrong += answer != right
        print(f"{'ok  ' if answer == right else 'FAIL'} {name}  {probe.__doc__}")
        print(f"        must answer {right}")
        print(f"        answered    {answer}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
