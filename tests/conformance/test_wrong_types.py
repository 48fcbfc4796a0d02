"""Arguments of a wrong type: the error names the call and what it takes; and what objects show of themselves."""

from __future__ import annotations

from collections.abc import Callable

import halstream as hs
import pytest
from halstream import testing

pytestmark = pytest.mark.usefixtures("backend")

#: What is called with a stream -> the error.
CALLS: dict[str, tuple[Callable[[hs.Stream], object], str]] = {
    "wait": (lambda s: s.wait(3), "wait() takes an event or a stream, not int"),
    "wait None": (lambda s: s.wait(None), "wait() takes an event or a stream, not NoneType"),
    "record": (lambda s: s.record(3), "record() takes a halstream Event, not int"),
    "delay": (lambda s: s.delay("x"), "delay() takes a number of seconds, not str"),
    "call": (lambda s: s.call(3), "call() takes a function, not int"),
    "call_many": (
        lambda s: s.call_many(3),
        "call_many() takes an iterable of functions, not int",
    ),
    "launch": (lambda s: s.launch(3, 1, 1), "launch() takes a Kernel, not int"),
    "leaks": (lambda s: testing.leaks(3), "leaks() takes a Snapshot or None, not int"),
    "gate": (lambda s: testing.Gate(3), "Gate() takes a Stream, not int"),
    "schedule": (lambda s: testing.schedule(3), "schedule() takes a str or a Token, not int"),
    "use_backend": (lambda s: hs.use_backend(3), "use_backend() takes the name of a backend, not int"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_type_is_refused_with_what_the_call_takes(name: str) -> None:
    call, text = CALLS[name]
    s = hs.Stream()
    with pytest.raises(TypeError) as raised:
        call(s)
    assert str(raised.value) == text
    assert s.query(), "nothing was enqueued"


@pytest.mark.needs("graphs")
def test_G8_a_node_is_added_by_a_function() -> None:
    with pytest.raises(TypeError, match=r"add\(\) takes a function that enqueues one operation, not int"):
        hs.Graph().add(3)


def test_an_object_of_the_tests_shows_its_state() -> None:
    s = hs.Stream()
    gate = testing.Gate(s)
    assert repr(gate) == f"<halstream Gate {gate._id}, closed>"
    gate.open()
    assert repr(gate) == f"<halstream Gate {gate._id}, open>"
    s.synchronize()
    with testing.Trace() as trace:
        s.nop()
        assert repr(trace) == "<halstream Trace of 0 operations, which goes on>"
    assert repr(trace) == "<halstream Trace of 1 operation>"


@pytest.mark.needs("schedules")
def test_a_schedule_shows_its_form_and_whether_it_is_in_force() -> None:
    chosen = testing.schedule("random(5)")
    assert repr(chosen) == "<halstream Schedule 'random 5'>"
    with chosen:
        assert repr(chosen) == "<halstream Schedule 'random 5', in force>"
    with pytest.raises(
        hs.ScheduleError,
        match=r"the schedule is written pct\(seed, depth, steps\): numbers in parentheses, 3 and not 0",
    ):
        testing.schedule("pct")


def test_the_testing_module_shows_its_public_names() -> None:
    assert {name for name in dir(testing) if not name.startswith("_")} == set(testing.__all__)
