"""Contexts of streams in copied contexts, deep stacks, and guards that are made again and again."""

from __future__ import annotations

import contextvars
import gc
import inspect
import pickle
import weakref
from typing import Any

import halstream as hs
import pytest
from halstream.torch import cuda

pytestmark = pytest.mark.usefixtures("backend")


def test_T1_a_context_that_is_entered_here_can_be_left_in_a_copy_too() -> None:
    before, s = hs.current_stream(), hs.Stream()
    s.__enter__()
    copied = contextvars.copy_context()
    s.__exit__(None, None, None)
    assert hs.current_stream() == before

    def leave() -> None:
        assert hs.current_stream() is s
        s.__exit__(None, None, None)
        assert hs.current_stream() == before

    copied.run(leave)
    assert hs.current_stream() == before


def test_T1_a_context_that_was_left_in_a_copy_is_still_entered_here() -> None:
    before, s = hs.current_stream(), hs.Stream()
    s.__enter__()
    contextvars.copy_context().run(s.__exit__, None, None, None)
    assert hs.current_stream() is s
    s.__exit__(None, None, None)
    assert hs.current_stream() == before


def test_T1_a_stack_that_was_never_left_ends_with_its_context() -> None:
    s = hs.Stream()
    alive = weakref.ref(s)

    def enter(s: hs.Stream) -> None:
        for _ in range(100_000):
            s.__enter__()

    contextvars.copy_context().run(enter, s)
    del s
    gc.collect()
    assert alive() is None


def test_T1_a_guard_knows_nothing_of_those_that_ended_before() -> None:
    s = hs.Stream()
    ended: list[Any] = []
    for _ in range(50):
        guard = cuda.stream(s)
        assert not hasattr(guard, "note")
        assert guard.src_prev_stream is None
        guard.note = 1  # type: ignore[attr-defined]
        ended.append(weakref.ref(guard))
        with guard:
            assert guard.src_prev_stream == cuda.default_stream()
        del guard
    assert all(reference() is None for reference in ended)


def test_T1_guards_that_live_together_are_different_objects() -> None:
    streams = [hs.Stream() for _ in range(40)]
    guards = [cuda.stream(s) for s in streams]
    del guards[::2]
    guards += [cuda.stream(s) for s in streams]
    assert [guard.stream for guard in guards] == [*streams[1::2], *streams]
    for guard, s in zip(guards, [*streams[1::2], *streams], strict=True):
        with guard:
            assert hs.current_stream() is s


def test_the_function_of_guards_takes_a_stream_and_can_be_pickled() -> None:
    assert list(inspect.signature(cuda.stream).parameters) == ["stream"]
    assert pickle.loads(pickle.dumps(cuda.stream)) is cuda.stream
    s = cuda.Stream()
    assert cuda.stream(stream=s).stream is s
    for wrong in ({}, {"other": s}, {"stream": s, "other": s}):
        with pytest.raises(TypeError):
            cuda.stream(**wrong)
    with pytest.raises(TypeError):
        cuda.stream(s, s)  # type: ignore[call-arg]


def test_a_subclass_of_guards_keeps_its_own_state() -> None:
    class Counting(cuda.StreamContext):
        def __init__(self, stream: Any) -> None:
            super().__init__(stream)
            self.count = 0

    s = cuda.Stream()
    guard = Counting(s)
    guard.count += 1
    with guard:
        assert cuda.current_stream() is s
    assert guard.count == 1
