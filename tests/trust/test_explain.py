"""The text about a failing schedule: which operations, where, and in which words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import halstream
import halstream as hs
import pytest
from halstream._records import OperationRecord
from halstream._schedules.execution import Execution, Failure
from halstream._schedules.explain import _View, explain, nondeterminism
from halstream._schedules.matching import place_of
from halstream._schedules.search import Found
from halstream._schedules.shrink import Shrunk
from halstream._schedules.steps import host_calls, labels
from halstream._schedules.token import Hold
from halstream.testing import explore
from record_help import operation, stack_text

OWN = os.path.join(os.path.dirname(halstream.__file__), "_stream.py")


def line(number: int, kind: str, stream: int = 1, thread: int = 7, **fields: Any) -> OperationRecord:
    """Return an operation of a log."""
    return operation(number, kind, stream, thread=thread, **fields)


def stacks(site: int) -> str:
    app = "/else/where/app.py"
    return stack_text((OWN, 10, "Stream.call"), (app, site, "run"), (app, 1, "<module>"))


def found(holds: tuple[Hold, ...] = (Hold(1, 2, 2, 1),), **changes: Any) -> Found:
    """Return a failure in which a copy of stream 1 comes after a function of stream 2."""
    trace = (
        line(1, "record", 5, site=20, event=3),
        line(2, "copy", 5, site=31, reads=((4096, 64),), writes=((8192, 64),)),
        line(3, "call", 6, site=40, reads=((8192, 64),)),
        line(4, "synchronize stream", 6, host=True, site=41),
    )
    execution = Execution(
        "holds " + ",".join(map(str, holds)) if holds else "latest",
        "h1 1.1#1 h2 h3 2.1#3 h4 1.2#2",
        "1 record 1\n1 work 1\n1 call 2\n1 synchronize 2\n",
        "0123456789abcdef",
        7,
        Failure("AssertionError"),
        trace,
    )
    fifo = Execution("fifo", "h1 1.1 h2 1.2 h3 2.1 h4", execution.calls, "0" * 16, 7)
    shrunk = Shrunk(holds, execution, 3, 8, 0.25, True)
    values: dict[str, Any] = {"shrunk": shrunk, "original": "latest", "tried": 2, **changes}
    return Found(execution, fifo, **values)


def text(of: Found) -> str:
    return explain(of, "pytest x", stacks)


def test_both_operations_with_their_lines_in_the_order_in_which_they_ran() -> None:
    lines = text(found()).splitlines()
    token = str(found().token)
    assert lines == [
        f"Fails under schedule {token}: as fifo, but 1 operation is held.",
        "Found under 'latest', the 2nd schedule tried, which departs from fifo in 3 places;",
        "shrunk in 8 runs and 0.2 s.",
        "  stream 2  call of 64 bytes  /else/where/app.py:40 run()",
        "  stream 1  copy of 64 bytes  /else/where/app.py:31 run()",
        "            held until the call of 64 bytes on stream 2 at /else/where/app.py:40",
        "It fails when the call of 64 bytes on stream 2 at /else/where/app.py:40 runs before the copy of 64 bytes on "
        "stream 1 at /else/where/app.py:31: nothing orders them.",
        "Replay: pytest x",
    ]


def test_a_call_of_the_host_has_its_line() -> None:
    shown = text(found((Hold(1, 2, 0, 4),)))
    assert "host      synchronize       /else/where/app.py:41 run()" in shown
    assert "has not run before the host's synchronize at /else/where/app.py:41: nothing makes the host wait" in shown
    assert "nothing makes the host wait for it earlier." in shown
    shown = text(found((Hold(1, 2, 0, 3),)))
    assert "the host's call that enqueued the call of 64 bytes at /else/where/app.py:40" in shown


def test_a_call_that_is_in_no_log_is_named_by_its_number() -> None:
    execution = Execution("holds 1.1>h1", "h1 1.1#9", "1 query 1\n", "0" * 16, 2, Failure("LookupError"))
    shown = text(Found(execution, execution, original="latest", shrunk=Shrunk((), None, 1, 1, 0.0, True)))
    assert "the operation on stream 1 (operation 1 of stream 1)" in shown
    assert "the host's query (call 1 of the run)" in shown


def test_several_holds_each_have_a_sentence() -> None:
    shown = text(found((Hold(1, 2, 2, 1), Hold(1, 1, 0, 2))))
    assert "2 operations are held" in shown
    assert shown.count("It fails when") == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shrunk": None, "tried": 1}, "the first tried"),
        ({"shrunk": None, "tried": 23}, "the 23rd tried"),
        ({"shrunk": None, "tried": 12}, "the 12th tried"),
        ({"tried": 0}, "replayed"),
        ({"shrunk": Shrunk((), None, 3, 200, 5.0, False)}, "not be made smaller in 200 runs and 5.0 s: the budget"),
        ({"shrunk": Shrunk((), None, 3, 1, 0.0, True)}, "in 1 run and 0.0 s: no list of held operations fails"),
    ],
)
def test_the_explanation_of_an_unshrunk_schedule_has_the_reason(changes: dict[str, Any], words: str) -> None:
    shown = text(found((), **changes))
    assert words in shown
    assert "It fails when" not in shown
    # The departures are shown all the same.
    assert "copy of 64 bytes" in shown


def test_an_incomplete_result_is_reported_as_possibly_not_minimal() -> None:
    shown = text(found(shrunk=Shrunk((Hold(1, 2, 2, 1),), None, 3, 200, 20.0, False)))
    assert "the whole budget, so fewer may do" in shown


def test_under_fifo_no_order_is_blamed() -> None:
    execution = Execution("fifo", "h1 1.1", "1 nop 1\n", "0" * 16, 2, Failure("LookupError"))
    shown = text(Found(execution, execution, original="fifo"))
    assert "It fails under fifo, where everything runs in the order of the calls" in shown


def test_what_is_not_deterministic_names_the_difference_and_the_schedule() -> None:
    shown = nondeterminism(found(difference="call 3 of the host was 'a' in one run and 'b' in the other"))
    assert "not deterministic by itself: two runs under the schedule latest differ. Call 3 of the host" in shown


def test_the_place_is_the_first_frame_outside_halstream() -> None:
    place = place_of(stacks(5))
    assert place is not None
    assert (place.file, place.line, place.function) == ("/else/where/app.py", 5, "run")
    assert place_of(stack_text((OWN, 1, "x"))) is None
    assert place_of("") is None


def _step(operation: OperationRecord, frames: tuple[tuple[str, int, str], ...]) -> Any:
    execution = Execution("fifo", "1.1#1", "", "", 7, Failure("AssertionError"), (operation,))
    return _View(execution, lambda site: stack_text(*frames)).step("1.1")


def test_an_operator_has_its_own_name() -> None:
    add: OperationRecord = {**line(1, "native", writes=((4096, 262144),), site=1), "name": "aten::add_"}
    step = _step(add, ((__file__, 1, "run"),))
    assert step.what == "aten::add_ of 262144 bytes"


@pytest.mark.parametrize(("package", "stream"), [("loader", "stream 1"), ("torch", "stream 1 (mine)")])
def test_a_stream_of_a_library_does_not_get_the_name_of_the_object_that_the_program_calls(
    tmp_path: Path, package: str, stream: str
) -> None:
    program, library = tmp_path / "app.py", tmp_path / "site-packages" / package / "module.py"
    program.write_text("mine.wait(other)\n")
    step = _step(line(1, "wait", site=1), ((str(library), 1, "wait"), (str(program), 1, "run")))
    assert (step.stream, step.place) == (stream, (str(program), 1, "run"))


def test_files_below_the_current_folder_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(place_of(stack_text((f"{tmp_path}/sub/app.py", 3, "run")))) == f"sub{os.sep}app.py:3"


def parsed(*lines: OperationRecord) -> dict[int, Any]:
    from halstream._traces.log import parse

    return {one.id: one for one in parse(lines)}


def test_streams_go_by_the_order_of_their_first_use() -> None:
    execution = Execution("fifo", "1.1#1 2.1#2 3.1#3")
    lines = parsed(line(1, "nop", 90), line(2, "nop", 0), line(3, "nop", 4))
    assert labels(execution, lines) == {1: "stream 1", 2: "default stream", 3: "stream 3"}
    lines = parsed(line(1, "nop", 90), line(2, "nop", 0, device=1))
    assert labels(execution, lines) == {1: "stream 1 of device 0", 2: "default stream of device 1"}


@pytest.mark.needs("schedules")
@pytest.mark.needs("graphs")
def test_X10_the_nodes_of_a_launch_are_on_the_stream_of_the_launch() -> None:
    main, side, x, y = hs.Stream(), hs.Stream(), hs.empty(64, "u1"), hs.empty(64, "u1")
    hs.synchronize()

    def program() -> None:
        with hs.capture(main) as graph:
            side.wait(main)
            x.fill(1, main)
            y.copy_from(x, side)
            main.wait(side)
        x.fill(0, main)
        y.fill(0, main)
        graph.instantiate().launch(main)
        main.synchronize()
        assert y.numpy()[0] == 1

    with pytest.raises(AssertionError) as exc:
        explore(program)
    shown = "\n".join([str(exc.value), *getattr(exc.value, "__notes__", [])])  # CPython 3.10 has no notes
    assert "node 1 (copy of 64 bytes)" in shown, shown
    assert "when node 1, the copy of 64 bytes, of the launch on stream 1 at " in shown, shown
    assert "before node 0, the fill of 64 bytes, of the launch on stream 1 at " in shown, shown
    assert "(side)" not in shown and "stream 2" not in shown and "stream 3" not in shown, shown


def kinds(calls: str, *lines: OperationRecord, order: str = "1.1#1 2.1#2") -> dict[int, int]:
    execution = Execution("fifo", order, calls.replace(",", "\n"))
    return {number: one.id for number, one in host_calls(execution, parsed(*lines)).items()}


def test_calls_and_lines_are_matched_in_their_order() -> None:
    lines = (
        line(1, "nop", 5),
        line(2, "copy", 6),
        line(3, "wait", 6),
        line(4, "synchronize stream", 5, host=True),
        line(5, "new event", host=True, device=-1),
        line(6, "free", 5),
        line(7, "query event", 6, host=True),
    )
    # A wait is a query first; a query that found work pending is told nowhere.
    calls = "1 nop 1,1 work 2,1 enqueue 0,1 query 1,1 synchronize 1,1 query 2"
    assert kinds(calls, *lines) == {1: 1, 2: 2, 3: 3, 4: 4, 5: 4, 6: 7}
    assert kinds("1 nop 1,1 work 2,1 enqueue 0,1 query 1", *lines)[4] == 4


def test_calls_without_a_log_line_do_not_shift_the_others() -> None:
    lines = (line(1, "nop", 5), line(2, "copy", 6))
    assert kinds("1 nop 1,1 nop 2,1 work 2", *lines)[1] == 1
    assert kinds("1 query 2,1 nop 1,1 work 2", *lines) == {2: 1, 3: 2}


def test_calls_of_threads_are_matched_separately() -> None:
    lines = (line(1, "nop", 5, thread=40), line(2, "nop", 6, thread=9), line(3, "record", 5, thread=40))
    assert kinds("1 nop 1,2 nop 2,1 record 1", *lines) == {1: 1, 2: 2, 3: 3}


def test_a_record_is_on_its_own_stream_where_another_one_waits_on_the_same_line() -> None:
    from halstream._checks.source import statement

    place = Path(__file__)
    line = next(n for n, text in enumerate(place.read_text().splitlines(), 1) if text.endswith("# read by the test"))
    found = statement(str(place), line)
    assert found is not None
    assert (found.stream("record"), found.stream("wait"), found.stream()) == ("producer", "consumer", "consumer")


def _waits(consumer: Any, producer: Any) -> None:
    consumer.wait_event(producer.record())  # read by the test
