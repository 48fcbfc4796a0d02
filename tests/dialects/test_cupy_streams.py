"""cupy.cuda: stream objects, what they are equal to, and which one is current."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import pytest

from halstream.cupy import cuda
from halstream.cupy.cuda import Event, Stream, get_current_stream
from halstream.cupy.cuda.stream import _BaseStream

pytestmark = pytest.mark.dialect("cupy")

LIMIT = 10.0
MAKERS = {
    "null": lambda: Stream(null=True),
    "ptds": lambda: Stream(ptds=True),
    "plain": Stream,
}


@pytest.fixture(params=MAKERS)
def stream(request: pytest.FixtureRequest, backend: str) -> Stream:
    return MAKERS[request.param]()


def in_thread(function: Callable[[], Any]) -> Any:
    """Run a function in a thread of its own and return its result or raise its error."""
    result: list[Any] = []
    error: list[BaseException] = []

    def run() -> None:
        try:
            result.append(function())
        except BaseException as exc:
            error.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(LIMIT)
    assert not thread.is_alive()
    if error:
        raise error[0]
    return result[0]


# -- identity ---------------------------------------------------------------


@pytest.mark.row(1)
def test_null_streams_are_equal(backend: str) -> None:
    assert Stream.null == Stream(True)
    assert Stream(True) == Stream(True)
    assert not Stream.null != Stream(True)


@pytest.mark.row(2)
def test_ptds_equals_ptds_and_not_null(backend: str) -> None:
    assert Stream.ptds == Stream(ptds=True)
    assert Stream(True) != Stream(ptds=True)
    assert Stream(null=True, ptds=True) == Stream.null


@pytest.mark.row(3)
def test_new_stream_equals_nothing_else(backend: str) -> None:
    new = Stream()
    assert new not in (Stream.null, Stream.ptds, Stream())
    assert new == new
    assert new != new.ptr and new != None  # noqa: E711


@pytest.mark.row(4)
def test_hash_and_dict_keys(backend: str) -> None:
    streams = [Stream.null, Stream.ptds, Stream(), Stream()]
    table = {s: i for i, s in enumerate(streams)}
    assert [table[s] for s in streams] == [0, 1, 2, 3]
    assert table[Stream(null=True)] == 0
    assert all(hash(s) == hash(s.ptr) for s in streams)


def test_handles_and_devices(backend: str) -> None:
    assert (Stream.null.ptr, Stream.null.device_id) == (0, -1)
    assert (Stream.ptds.ptr, Stream.ptds.device_id) == (2, -1)
    new = Stream()
    assert isinstance(new.ptr, int) and new.ptr > 2 and new.device_id == 0
    with cuda.Device(1):
        assert Stream().device_id == 1


def test_repr(backend: str) -> None:
    new = Stream()
    assert repr(Stream.null) == "<Stream 0 (device -1)>"
    assert repr(Stream.ptds) == "<Stream 2 (device -1)>"
    assert repr(new) == f"<Stream {new.ptr} (device 0)>"


def test_types(backend: str) -> None:
    assert type(Stream.null) is Stream and type(Stream.ptds) is Stream
    assert isinstance(Stream(), _BaseStream) and not hasattr(cuda, "BaseStream")
    assert Stream.__module__.endswith("cupy.cuda.stream")
    with pytest.raises(AttributeError, match="type object 'Stream' has no attribute 'ptr'"):
        Stream.ptr  # noqa: B018
    with pytest.raises(TypeError, match="'<' not supported"):
        Stream.null < Stream.ptds  # type: ignore[operator]  # noqa: B015
    assert bool(Stream.null)


def test_subclass_with_its_own_init(backend: str) -> None:
    class Named(Stream):
        def __init__(self, name: str) -> None:
            super().__init__(non_blocking=True)
            self.name = name

    named = Named("copies")
    assert repr(named) == f"<Named {named.ptr} (device 0)>"
    with named:
        assert get_current_stream() is named


@pytest.mark.parametrize("action", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(stream: Stream, action: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="cannot pickle or copy"):
        action(stream)


# -- properties -------------------------------------------------------------


@pytest.mark.row(24)
def test_is_non_blocking(backend: str) -> None:
    assert Stream().is_non_blocking is False
    assert Stream(non_blocking=True).is_non_blocking is True
    assert Stream.null.is_non_blocking is False


@pytest.mark.row(25)
def test_priority(backend: str) -> None:
    assert Stream(priority=0).priority == 0
    assert Stream(priority=-1).priority == -1
    assert Stream().priority == 0 and Stream.null.priority == 0
    with pytest.raises(AttributeError, match="no setter"):
        Stream.null.priority = 1  # type: ignore[misc]


@pytest.mark.row(26)
def test_priority_outside_the_range_is_clamped(backend: str) -> None:
    least, greatest = cuda.Device(0).priority_range
    assert greatest <= Stream(priority=-3).priority <= least
    assert Stream(priority=-1000).priority == greatest
    assert Stream(priority=1000).priority == least


def test_wrong_arguments(backend: str) -> None:
    with pytest.raises(TypeError, match="an integer is required"):
        Stream(priority="x")  # type: ignore[arg-type]
    with pytest.raises(OverflowError, match="value too large to convert to int"):
        Stream(priority=2**40)
    with pytest.raises(TypeError, match="bogus"):
        Stream(bogus=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Stream(False, False, False, None, 1)  # type: ignore[call-arg]


def test_done_follows_the_work(stream: Stream, hold: Any) -> None:
    gate = hold(stream)
    assert stream.done is False
    gate.open()
    stream.synchronize(timeout=LIMIT)
    assert stream.done is True
    with pytest.raises(AttributeError):
        stream.done = True  # type: ignore[misc]


def test_done_of_a_broken_handle_is_false(backend: str) -> None:
    with pytest.warns(DeprecationWarning):
        bad = cuda.ExternalStream(987654321)
    assert bad.done is False
    with pytest.raises(cuda.runtime.CUDARuntimeError, match="^cudaErrorInvalidResourceHandle: "):
        bad.synchronize()


def test_synchronize_blocks_until_done(hold: Any) -> None:
    s = Stream()
    gate = hold(s)
    with pytest.raises(cuda.runtime.CUDARuntimeError, match="^cudaErrorTimeout: ") as info:
        s.synchronize(timeout=0.01)
    assert isinstance(info.value, TimeoutError)
    gate.open()
    s.synchronize()
    assert s.done


# -- order ------------------------------------------------------------------


def test_null_waits_for_blocking_streams_only(hold: Any) -> None:
    blocking, other = Stream(), Stream(non_blocking=True)
    gate = hold(blocking)
    Stream.null.record(Event())
    assert not Stream.null.done
    other.nop()
    other.synchronize(timeout=LIMIT)
    gate.open()
    Stream.null.synchronize(timeout=LIMIT)


def test_null_means_the_current_device(hold: Any) -> None:
    gate = hold(Stream.null)
    with cuda.Device(1):
        assert Stream.null.done
    assert not Stream.null.done
    gate.open()
    Stream.null.synchronize(timeout=LIMIT)


def test_ptds_is_the_callers(hold: Any) -> None:
    gate = hold(Stream.ptds)
    assert not Stream.ptds.done
    assert in_thread(lambda: Stream.ptds.done)
    gate.open()
    Stream.ptds.synchronize(timeout=LIMIT)


# -- current stream ---------------------------------------------------------


@pytest.mark.row(5)
def test_use_returns_and_sets_the_object(stream: Stream) -> None:
    assert stream.use() is stream
    assert get_current_stream() is stream


@pytest.mark.row(6)
def test_current_stream_is_kept_alive(stream: Stream) -> None:
    handle = stream.ptr
    stream.use()
    del stream
    gc.collect()
    assert get_current_stream().ptr == handle
    get_current_stream().synchronize(timeout=LIMIT)


@pytest.mark.row(7)
def test_null_use(backend: str) -> None:
    Stream().use()
    Stream.null.use()
    assert get_current_stream() is Stream.null


def test_initially_null(backend: str) -> None:
    assert get_current_stream() is Stream.null
    Stream().use()
    assert in_thread(get_current_stream) is Stream.null


@pytest.mark.row(12)
def test_with_nests(backend: str) -> None:
    s1, s2 = Stream(), Stream()
    with s1 as entered:
        assert entered is s1 and get_current_stream() is s1
        with s2:
            assert get_current_stream() is s2
        assert get_current_stream() is s1
    assert get_current_stream() is Stream.null


def test_with_restores_after_an_error(backend: str) -> None:
    with pytest.raises(KeyError), Stream():
        raise KeyError
    assert get_current_stream() is Stream.null


@pytest.mark.row(13)
@pytest.mark.parametrize("used", ["null", "ptds", "plain"])
def test_outermost_with_forgets_use(backend: str, used: str) -> None:
    MAKERS[used]().use()
    with Stream():
        pass
    assert get_current_stream() is Stream.null


@pytest.mark.row(14)
def test_use_after_use(backend: str) -> None:
    s1, s2 = Stream().use(), Stream().use()
    assert get_current_stream() is s2
    s1.use()
    assert get_current_stream() is s1


@pytest.mark.row(20, 21, 22)
def test_use_inside_with(backend: str) -> None:
    s1, s2, s3 = Stream(), Stream(), Stream()
    with s1:
        s2.use()
        assert get_current_stream() is s2
        del s2
        gc.collect()
        with s3:
            assert get_current_stream() is s3
        assert get_current_stream() is s1
    assert get_current_stream() is Stream.null


def test_use_in_an_inner_with_is_forgotten_by_both(backend: str) -> None:
    s1, s2, s3 = Stream(), Stream(), Stream()
    with s1:
        with s2:
            s3.use()
        assert get_current_stream() is s1
        s3.use()
        with cuda.Device(0), s2:
            pass
        assert get_current_stream() is s1
    assert get_current_stream() is Stream.null


def test_same_stream_may_be_entered_again(backend: str) -> None:
    s = Stream()
    with s, s:
        assert get_current_stream() is s
    assert get_current_stream() is Stream.null


def test_exit_without_enter(backend: str) -> None:
    with pytest.raises(IndexError):
        Stream().__exit__()
    s = Stream().__enter__()
    with pytest.raises(IndexError):
        in_thread(s.__exit__)
    s.__exit__()


def test_exit_restores_by_position(backend: str) -> None:
    s1, s2 = Stream(), Stream()
    s1.__enter__()
    s2.__enter__()
    s1.__exit__()
    assert get_current_stream() is s1
    s2.__exit__()
    assert get_current_stream() is Stream.null


@pytest.mark.row(23)
def test_threads_share_a_stream_object(backend: str) -> None:
    shared = [Stream(non_blocking=True)]
    barrier = threading.Barrier(2)

    def work() -> int:
        shared[0].use()
        barrier.wait(LIMIT)
        shared.clear()
        gc.collect()
        barrier.wait(LIMIT)
        current = get_current_stream()
        event = current.record()
        event.synchronize(timeout=LIMIT)
        return current.ptr  # type: ignore[no-any-return]

    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(work())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert len(results) == 2 and results[0] == results[1] > 2


def test_get_current_stream_arguments(backend: str) -> None:
    s = Stream().use()
    assert get_current_stream(0) is get_current_stream(device_id=-1) is s
    assert get_current_stream(1) is Stream.null
    with pytest.raises(IndexError):
        get_current_stream(99)
    for wrong in (None, "x", object()):
        with pytest.raises(TypeError, match="an integer is required"):
            get_current_stream(wrong)  # type: ignore[arg-type]


def test_streams_of_other_dialects(backend: str) -> None:
    import halstream as hs

    theirs = hs.Stream()
    with theirs:
        mine = get_current_stream()
    assert type(mine) is Stream and mine.ptr == theirs.handle and mine.device_id == 0
    assert mine == theirs and theirs == mine
    hs.use(theirs)
    with Stream():
        pass
    assert get_current_stream() == theirs, "only use() is forgotten"


def test_null_is_the_default_stream_of_the_asked_device(backend: str) -> None:
    import halstream as hs

    with cuda.Device(1):
        Stream.null.use()
    assert hs.Stream._current(1) == hs.Device(1).default_stream
    assert hs.Stream._current(0) == hs.Device(0).default_stream


PTDS_PROGRAM = """
from halstream.cupy import cuda
from halstream.testing import Gate

assert cuda.get_current_stream() is cuda.Stream.ptds
event = cuda.Event(disable_timing=True)
with Gate(cuda.Stream.ptds):
    event.record()
    assert not event.done, "the per-thread default stream is where events go"
    with cuda.Stream(non_blocking=True) as stream:
        assert cuda.get_current_stream() is stream
    assert cuda.get_current_stream() is cuda.Stream.ptds
event.synchronize(timeout=10)
with cuda.Stream.null:
    assert cuda.get_current_stream() is cuda.Stream.null
"""


@pytest.mark.row(13)
def test_ptds_variable(child: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = child(PTDS_PROGRAM, env={"CUPY_CUDA_PER_THREAD_DEFAULT_STREAM": "1"})
    assert done.returncode == 0, done.stderr
    done = child(
        "import halstream.cupy.cuda", env={"CUPY_CUDA_PER_THREAD_DEFAULT_STREAM": "yes"}
    )
    assert done.returncode != 0 and "ValueError" in done.stderr
