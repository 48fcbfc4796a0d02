"""Captures of other libraries on streams of the runtime, and of the runtime on streams of others."""

from __future__ import annotations

import pytest
from cuda_help import Program

BEGIN = """
    import ctypes, gc
    import halstream as hs, look_alike
    s, o, ran = hs.Stream(), hs.Stream(), []
    x, y = hs.zeros(64, "u1"), hs.zeros(64, "u1")
    hs.synchronize(timeout=10)
    with hs.capture(o) as graph:
        y.fill(5, o)
    run = graph.instantiate()
    lib = look_alike.Driver().lib
    pointer = ctypes.c_void_p

    def begin(handle):
        assert lib.cuStreamBeginCapture_v2(pointer(handle), {mode}) == 0

    def end(handle):
        graph, executable = pointer(), pointer()
        code = lib.cuStreamEndCapture(pointer(handle), ctypes.byref(graph))
        assert code == 0, code
        assert lib.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)) == 0
        return executable

    def launch(executable):
        assert lib.cuGraphLaunch(executable, pointer(s.handle)) == 0
        s.synchronize(timeout=10)
        return x.numpy(s)[0], y.numpy(s)[0], ran
"""


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize(
    ("enqueue", "first", "second"),
    [
        ("x.fill(3, s)", "(3, 0, [])", "(3, 0, [])"),
        ("x.fill(3, s); y.copy_from(x, s)", "(3, 3, [])", "(3, 3, [])"),
        ("run.launch(s)", "(0, 5, [])", "(0, 5, [])"),
        ("e = s.record(); s.wait(e); x.fill(4, s)", "(4, 0, [])", "(4, 0, [])"),
        ("o.wait(s); x.fill(4, o); s.wait(o)", "(4, 0, [])", "(4, 0, [])"),
    ],
)
def test_S3_what_is_enqueued_belongs_to_the_graph_of_the_library(
    mode: int, enqueue: str, first: str, second: str, run_program: Program
) -> None:
    run_program(
        BEGIN.format(mode=mode)
        + f"""
    begin(s.handle)
    {enqueue}
    other = hs.Stream()  # looks at the streams, which does not break the capture
    s.describe()
    gc.collect()
    executable = end(s.handle)
    s.synchronize(timeout=10)
    assert (x.numpy(s)[0], y.numpy(s)[0], ran) == (0, 0, []), "it ran at the capture"
    assert launch(executable) == {first}
    assert launch(executable) == {second}
    hs.synchronize(timeout=10)
    """,
        FAKECUDA_STRICT="1",
    )


def test_G1_a_capture_is_not_begun_where_a_library_captures(run_program: Program) -> None:
    run_program(
        BEGIN.format(mode=2)
        + """
    begin(s.handle)
    try:
        with hs.capture(s):
            raise AssertionError
    except hs.CaptureError as exc:
        assert exc.code == 401 and "another library captures stream" in str(exc), exc
    assert "captured by another library" in s.describe()
    end(s.handle)
    with hs.capture(s) as graph:
        x.fill(2, s)
    graph.instantiate().launch(s)
    assert x.numpy(s)[0] == 2
    """,
        FAKECUDA_STRICT="1",
    )


def test_S3_a_query_breaks_the_capture_as_the_driver_says_and_the_stream_is_usable(run_program: Program) -> None:
    run_program(
        BEGIN.format(mode=2)
        + """
    begin(s.handle)
    for call in (s.query, lambda: s.synchronize(timeout=10)):
        try:
            call()
        except hs.CaptureError as exc:
            assert exc.code in (900, 901), exc
        else:
            raise AssertionError
    graph = pointer(7)
    assert lib.cuStreamEndCapture(pointer(s.handle), ctypes.byref(graph)) == 901 and not graph.value
    x.fill(1, s)
    assert x.numpy(s)[0] == 1
    """,
        FAKECUDA_STRICT="1",
    )


def test_G1_a_capture_on_a_stream_of_a_library_takes_what_the_runtime_enqueues(run_program: Program) -> None:
    """What the library enqueues there runs at once."""
    run_program(
        BEGIN.format(mode=2)
        + """
    handle = look_alike.Driver().stream()
    theirs = hs.Stream.from_handle(handle)
    with hs.capture(theirs) as graph:
        assert theirs.capturing
        x.fill(7, theirs)
        assert lib.cuMemsetD8Async(ctypes.c_uint64(y.ptr), 8, 64, pointer(handle)) == 0
    assert [node.kind for node in graph.nodes] == ["fill"]
    assert (x.numpy(theirs)[0], y.numpy(theirs)[0]) == (0, 8)
    graph.instantiate().launch(theirs)
    assert x.numpy(theirs)[0] == 7
    """,
        FAKECUDA_STRICT="1",
    )


@pytest.mark.parametrize(
    "call", ["s.call(ran.append, 1)", "s.call_checked(ran.append, 1)", "both.launch(s)", "x.numpy(s)"]
)
def test_G1_what_needs_the_host_is_refused_where_a_library_captures(call: str, run_program: Program) -> None:
    """Nothing of it becomes a node, and the capture stays valid."""
    run_program(
        BEGIN.format(mode=2)
        + f"""
    with hs.capture(o) as graph:
        x.fill(9, o)
        o.call(ran.append, 2)
    both = graph.instantiate()
    begin(s.handle)
    assert s.capturing
    try:
        {call}
    except hs.CaptureError as exc:
        assert exc.code == 900 and "another library captures" in str(exc), exc
    else:
        raise AssertionError
    executable = end(s.handle)
    assert not s.capturing
    assert launch(executable) == (0, 0, [])
    """,
        FAKECUDA_STRICT="1",
    )


@pytest.mark.parametrize(
    ("wait", "code"),
    [("hs.synchronize()", 900), ("hs.Device(0).synchronize()", 900), ("s.record().synchronize()", 907)],
)
def test_G1_a_wait_is_refused_where_a_library_captures(wait: str, code: int, run_program: Program) -> None:
    run_program(
        BEGIN.format(mode=2)
        + f"""
    begin(s.handle)
    try:
        {wait}
    except hs.CaptureError as exc:
        assert exc.code == {code}, exc
    else:
        raise AssertionError
    lib.cuStreamEndCapture(pointer(s.handle), ctypes.byref(pointer()))
    hs.synchronize(timeout=10)
    x.fill(1, s)
    assert x.numpy(s)[0] == 1
    """,
        FAKECUDA_STRICT="1",
    )


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize(
    ("enqueue", "look"),
    [
        ("e = s.record()", "repr(e), e._repr_html_()"),
        ("x.copy_from(p, s)", "hs.Stream(); s.describe()"),
        ("x.copy_from(p, s)", "del p; gc.collect(); hs.pinned_empty(64, 'u1')"),
        ("x.record_stream(s); x.fill(1, s)", "del x; gc.collect(); hs.empty(64, 'u1')"),
        ("write_value(s, v.ctypes.data, 1)", "s.describe(); hs.Stream()"),
        ("wait_value(s, v.ctypes.data, 0, CONDITION_AT_LEAST)", "s.describe(); hs.Stream()"),
        ("z = hs.empty(64, 'u1', stream=s); z.fill(1, s); del z; gc.collect()", "hs.Stream(); s.describe()"),
    ],
)
def test_S3_looks_of_the_runtime_do_not_break_the_capture_of_a_library(
    mode: int, enqueue: str, look: str, run_program: Program
) -> None:
    """A query of an event that is captured does, in every mode of the thread."""
    run_program(
        BEGIN.format(mode=mode)
        + f"""
    from halstream._memory._stream_values import wait_value, write_value
    from halstream._native._constants import CONDITION_AT_LEAST
    p = hs.pinned_empty(64, "u1")
    v = hs.pinned_empty(4, "i8")
    v[:] = 0
    hs.synchronize(timeout=10)
    begin(s.handle)
    {enqueue}
    {look}
    gc.collect()
    for _ in range(3):
        hs.Stream().describe()
    end(s.handle)
    hs.synchronize(timeout=10)
    """,
        FAKECUDA_STRICT="1",
    )


def test_S3_an_event_whose_record_is_in_a_finished_graph_of_a_library_is_refused(run_program: Program) -> None:
    """The driver refuses every question about it: no reason to wait, and the device is not lost."""
    run_program(
        BEGIN.format(mode=2)
        + """
    e = hs.Event(timing=True)
    begin(s.handle)
    s.record(e)
    end(s.handle)
    for call in (e.query, e.synchronize, lambda: o.wait(e), lambda: e.elapsed(e)):
        try:
            call()
        except hs.CaptureError as exc:
            assert exc.code in (1, 907), exc
            assert "record" in str(exc), exc
        else:
            raise AssertionError(call)
    repr(e), e._repr_html_()
    o.record(e)
    e.synchronize(timeout=10)
    assert e.query()
    """,
        FAKECUDA_STRICT="1",
    )
