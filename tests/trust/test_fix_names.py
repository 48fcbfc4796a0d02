"""The names in suggested lines stood for the very stream where the line goes, and the lines work as they are put in."""

from __future__ import annotations

import signal
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from halstream._checks import variables
from halstream._checks.edit import apply, edits
from halstream._checks.finding import Finding
from halstream._checks.remedy import remedy
from halstream._core import _current
from sanitize_help import run

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]


@pytest.fixture(autouse=True)
def leave_contexts() -> Iterator[None]:
    yield
    _current.reset()


def silenced(folder: Path, source: str) -> list[Finding]:
    """Return what is found in a program; with all lines that are suggested, as they are, nothing is, and it ends."""
    path = folder / "before.py"
    report = run(path, textwrap.dedent(source))
    _current.reset()
    found = list(report)
    made = [edits(remedy(one)) for one in found]
    assert found, "nothing is found"
    assert all(made), str(report)
    assert all(remedy(one).proven for one in found), str(report)
    text = apply(path.read_text(), [one for several in made for one in several])
    again = run(folder / "after.py", text)
    assert not again, f"{text}\n{again}"
    return found


def lines(found: list[Finding]) -> list[str]:
    return [one.fix for one in found]


def test_V10_the_object_that_made_a_stream_is_not_taken_for_it(tmp_path: Path) -> None:
    """A base class makes it in a tuple, so that the name nearest to the call is that of the object."""
    found = silenced(
        tmp_path,
        """
        import halstream as hs
        class Base:
            def __init__(self): self.s, self.n = hs.Stream(non_blocking=True), 1
        class Loader(Base):
            def fill(self, x, value):
                x.fill(value, self.s)
        loader = Loader()
        b = hs.Stream(non_blocking=True)
        x = hs.empty(8)
        loader.fill(x, 2)
        x.fill(1, b)
        """,
    )
    assert lines(found) == ["b.wait(loader.s.record())"]
    assert "(loader)" not in found[0].text


def test_V10_an_attribute_of_another_thread_is_not_used(tmp_path: Path) -> None:
    found = silenced(
        tmp_path,
        """
        import threading
        import halstream as hs
        local = threading.local()
        local.s = other = hs.Stream(non_blocking=True)
        x, b = hs.empty(8), hs.Stream(non_blocking=True)
        def work():
            local.s = hs.Stream(non_blocking=True)
            x.fill(1, local.s)
        t = threading.Thread(target=work); t.start(); t.join()
        x.fill(2, b)
        """,
    )
    assert [remedy(one).where for one in found] == ["after"], found[0].text


def test_V10_a_block_whose_end_races_gets_its_line_inside(tmp_path: Path) -> None:
    found = silenced(
        tmp_path,
        """
        import halstream as hs
        x = hs.empty(8)
        b = hs.Stream(non_blocking=True)
        class Flush:
            def __enter__(self): return self
            def __exit__(self, *_): x.fill(2, b)
        def run():
            a = hs.Stream(non_blocking=True)
            with Flush():
                x.fill(1, a)
        run()
        """,
    )
    place = remedy(found[0]).place
    assert lines(found) == ["b.wait(a.record())"] and place is not None and place.line == 11, found[0].text


def test_V10_a_loop_that_asks_for_more_has_no_place_in_front_of_it(tmp_path: Path) -> None:
    """The generator works each time, and a line in front of the loop runs once."""
    silenced(
        tmp_path,
        """
        import halstream as hs
        x = hs.empty(8)
        def batches(stream):
            for i in range(3):
                x.fill(i, stream)
                yield i
        def run():
            a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
            for _ in batches(a):
                x.fill(9, b)
        run()
        """,
    )


def test_V10_the_current_stream_of_another_place_is_not_used(tmp_path: Path) -> None:
    found = silenced(
        tmp_path,
        """
        import halstream as hs
        from halstream.torch import cuda
        x = hs.empty(8)
        s, t = cuda.Stream(), cuda.Stream()
        def inner():
            with cuda.stream(t):
                x.fill(2, t)
        x.fill(1, cuda.current_stream())
        with cuda.stream(s):
            inner()
        cuda.synchronize()
        """,
    )
    assert lines(found) == ["t.wait_event(cuda.default_stream().record_event())"]


def test_V10_a_stream_is_not_called_by_what_was_current_elsewhere(tmp_path: Path) -> None:
    found = silenced(
        tmp_path,
        """
        import halstream as hs
        from halstream.torch import cuda
        x = hs.empty(8)
        s = cuda.Stream()
        with cuda.stream(s):
            x.fill(1, cuda.current_stream())
        x.fill(2, cuda.default_stream())
        """,
    )
    assert lines(found) == ["cuda.default_stream().wait_event(s.record_event())"]


def test_V10_a_name_that_has_no_value_in_the_first_round_is_not_used(tmp_path: Path) -> None:
    silenced(
        tmp_path,
        """
        import halstream as hs
        x = hs.empty(8)
        b = hs.Stream(non_blocking=True)
        def make():
            side = None
            def step():
                nonlocal side
                x.fill(2, b)
                if side is None:
                    side = hs.Stream(non_blocking=True)
                x.fill(1, side)
            return step
        step = make()
        for _ in range(3):
            step()
        """,
    )


def test_V10_a_variable_of_a_loop_is_used_in_its_own_turn_only(tmp_path: Path) -> None:
    silenced(
        tmp_path,
        """
        import halstream as hs
        x = hs.empty(8)
        b = hs.Stream(non_blocking=True)
        def go():
            for i in range(3):
                x.fill(2, b)
                s = hs.Stream(non_blocking=True)
                x.fill(1, s)
        go()
        """,
    )


def test_V10_an_event_that_was_recorded_behind_the_first_is_waited_for(tmp_path: Path) -> None:
    found = silenced(
        tmp_path,
        """
        import halstream as hs
        x = hs.empty(8)
        class Lane:
            def __init__(self):
                self.stream, self.done = hs.Stream(non_blocking=True), hs.Event()
            def fill(self, value):
                x.fill(value, self.stream)
                self.stream.record(self.done)
        lane, b = Lane(), hs.Stream(non_blocking=True)
        lane.fill(1)
        x.fill(2, b)
        """,
    )
    assert lines(found) == ["b.wait(lane.done)"]


def test_V10_a_function_that_is_called_later_has_no_place_where_it_is_written(tmp_path: Path) -> None:
    found = silenced(
        tmp_path,
        """
        import halstream as hs
        x = hs.empty(8)
        def lane():
            stream = hs.Stream(non_blocking=True)
            return lambda value: x.fill(value, stream)
        first, second = lane(), lane()
        first(1)
        second(2)
        """,
    )
    place = remedy(found[0]).place
    assert place is not None and place.line == 9, found[0].text


@pytest.mark.parametrize("way", ["p[:] = 2", "stage(2)"])
def test_V10_the_host_waits_for_a_copy_that_is_seen_to_be_refilled_at_the_next_wait(tmp_path: Path, way: str) -> None:
    found = silenced(
        tmp_path,
        f"""
        import halstream as hs
        p, d = hs.pinned_empty(8), hs.empty(8)
        s = hs.Stream(non_blocking=True)
        def stage(value): p[:] = value
        p[:] = 1
        d.copy_from(p, s)
        {way}
        s.synchronize()
        """,
    )
    assert [one.category for one in found] == ["refill"] and lines(found) == ["s.synchronize()"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no columns")
@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("x.fill(1, a); x.fill(2, b)", "before `x.fill(2, b)` in"),
        ("x.fill(1, a); y = 1\nz = 'ä'; x.fill(2, b)", "before `x.fill(2, b)` in"),
        ("if x: x.fill(1, a)\nfor _ in 'x': x.fill(2, b)", "before `x.fill(2, b)` in"),
        ("def work(s): x.fill(1, s)\nwork(a); work(b)", "before `x.fill(1, s)` in"),
        ("with t.cuda.stream(a): x.fill(1, a); x.fill(2, b)", "before `x.fill(2, b)` in"),
        ("x.fill(1, a)\nfor i in range(2): x.fill(2, b); p.copy_from(x, b); p.numpy(a)", ""),
    ],
)
def test_V10_statements_of_one_line_are_told_apart(tmp_path: Path, body: str, place: str) -> None:
    head = "import halstream as hs\nimport halstream.torch as t\nfrom halstream.torch import cuda\n"
    made = "a, b, x, p = cuda.Stream(), cuda.Stream(), hs.empty(8), hs.empty(8)\n"
    found = silenced(tmp_path, head + made + body + "\n")
    assert place in found[0].text


def test_V10_a_line_in_front_of_a_call_is_tried_where_the_call_began(tmp_path: Path) -> None:
    """The other thread works while the call runs: a wait in front of it would wait for nothing."""
    found = silenced(
        tmp_path,
        """
        import threading
        import halstream as hs
        x = hs.empty(8)
        a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
        begun, filled = threading.Event(), threading.Event()
        def other():
            assert begun.wait(10)
            x.fill(1, a)
            filled.set()
        def work(stream):
            begun.set()
            assert filled.wait(10)
            x.fill(2, stream)
        t = threading.Thread(target=other); t.start()
        work(b)
        t.join()
        """,
    )
    place = remedy(found[0]).place
    assert place is not None and place.line != 17, found[0].text


def test_V10_a_line_that_was_not_tried_says_so(tmp_path: Path) -> None:
    (found,) = run(
        tmp_path / "program.py",
        """
        import halstream as hs
        from halstream.torch import cuda
        copies = cuda.Stream()
        def use():
            x = hs.empty(8, stream=cuda.default_stream())
            copies.wait_stream(cuda.default_stream())
            x.fill(1, copies)
            x.free()
        use()
        cuda.synchronize()
        """,
    )
    assert not remedy(found).proven and found.fix and "(not tried)" in found.text, found.text


def test_V10_a_report_keeps_its_names_when_others_are_made(tmp_path: Path) -> None:
    source = "import halstream as hs\na, b = hs.Stream(), hs.Stream()\nx = hs.empty(8)\nx.fill(1, a)\nx.fill(2, b)\n"
    report = run(tmp_path / "one.py", source)
    run(tmp_path / "two.py", source.replace("a,", "c,").replace(", a)", ", c)"))
    assert "(a)" in str(report) and "b.wait(a.record())" in str(report)


def test_V10_a_free_variable_hides_what_the_module_calls_so(tmp_path: Path) -> None:
    found = silenced(
        tmp_path,
        """
        import halstream as hs
        x = hs.empty(8)
        lane = a = hs.Stream(non_blocking=True)
        b = hs.Stream(non_blocking=True)
        def make():
            lane = None
            def second():
                assert lane is None
                x.fill(2, b)
            return second
        second = make()
        x.fill(1, lane)
        del a
        second()
        """,
    )
    place = remedy(found[0]).place
    assert place is not None and place.line != 10, found[0].text


def test_the_variables_of_a_frame_stay_where_what_traces_it_works_on_a_stream(tmp_path: Path) -> None:
    """Before CPython 3.13 they are copied to a dictionary before the function that traces, and back behind it."""
    program = """
        import sys
        import halstream as hs
        s = hs.Stream(non_blocking=True)
        def add():
            one, two = 1, 2
            return one + two
        def trace(frame, event, arg):
            s.nop()
            if event == "line" and "two" in frame.f_locals:
                frame.f_locals["two"] = 20
                s.nop()
            return trace
        before = sys.gettrace()
        sys.settrace(lambda frame, event, arg: trace(frame, event, arg) if frame.f_code is add.__code__ else None)
        try:
            total = add()
        finally:
            sys.settrace(before)
        assert total == 21, total
        """
    assert not run(tmp_path / "program.py", program)


def test_what_a_handler_of_a_signal_raises_while_variables_are_looked_at_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may run at any instruction: here at one of those that look."""
    real = variables._note

    def note(frame: Any, site: int) -> None:
        real(frame, site)
        if not raised:
            signal.raise_signal(signal.SIGUSR1)

    def handler(number: int, frame: Any) -> None:
        raised.append(number)
        raise TimeoutError("the program's own")

    raised: list[int] = []
    monkeypatch.setattr(variables, "_note", note)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(TimeoutError, match="the program's own"):
            run(tmp_path / "program.py", "import halstream as hs\nhs.Stream().nop()\n")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert raised


def test_no_code_of_the_program_runs_to_find_names(tmp_path: Path) -> None:
    program = """
        import sys, threading
        import halstream as hs
        ran = []
        class Meta(type):
            def __getattribute__(cls, name): ran.append(name); return super().__getattribute__(name)
            def __eq__(cls, other): ran.append("=="); return cls is other
            __hash__ = type.__hash__
        class Odd(metaclass=Meta):
            def __getattr__(self, name): ran.append(name); raise AttributeError(name)
            @property
            def stream(self): ran.append("stream")
            __class__ = property(lambda self: ran.append("__class__"))
        class Held:
            odd = Odd()
        class Local(threading.local):
            def __init__(self): ran.append("Local")
        odd, held, local = Odd(), Held(), Local()
        s = hs.Stream(non_blocking=True)
        def work():
            mine = odd
            s.nop()
        ran.clear()
        work()
        t = threading.Thread(target=work); t.start(); t.join()
        print("ran", ran, flush=True)
        assert not ran, ran
        """
    assert not run(tmp_path / "program.py", program)


@pytest.mark.parametrize(
    "branch",
    [
        "match i:\n        case 0: x.fill(1, a)\n        case 1: x.fill(2, b)",
        "if i: x.fill(2, b)\n    else: x.fill(1, a)",
    ],
)
def test_V10_a_line_behind_the_head_of_its_block_is_in_that_line(tmp_path: Path, branch: str) -> None:
    made = "a, b, x = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True), hs.empty(8)\n"
    silenced(tmp_path, f"import halstream as hs\n{made}for i in range(2):\n    {branch}\n")


def test_V10_the_line_for_streams_that_one_line_made_orders_all_of_them(tmp_path: Path) -> None:
    """The first two are ordered by their names, and the second and the third are not."""
    silenced(
        tmp_path,
        """
        import halstream as hs
        x, streams = hs.empty(8), [hs.Stream(non_blocking=True) for _ in range(3)]
        def work(s):
            x.fill(1, s)
        for s in streams:
            work(s)
        """,
    )
