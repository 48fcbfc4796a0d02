"""cupy.cuda: which stream is current, ``use`` and ``with`` (and how they mix)."""

from __future__ import annotations

import gc
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from halstream.cupy import cuda
from halstream.cupy.cuda import Stream, get_current_stream

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
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result(LIMIT)


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


def test_null_is_the_default_stream_of_the_requested_device(backend: str) -> None:
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
    done = child("import halstream.cupy.cuda", env={"CUPY_CUDA_PER_THREAD_DEFAULT_STREAM": "yes"})
    assert done.returncode != 0 and "ValueError" in done.stderr
