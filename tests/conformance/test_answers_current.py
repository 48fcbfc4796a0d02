"""Stream contexts that are entered and left without a Python frame."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


def test_T3_each_thread_has_its_own_stack_of_streams() -> None:
    s, seen = hs.Stream(), []

    def look() -> None:
        other = hs.Stream()
        seen.append(hs.current_stream() == s)
        with other:
            seen.append(hs.current_stream() is other)
            with s:
                seen.append(hs.current_stream() is s)
            seen.append(hs.current_stream() is other)
        seen.append(hs.current_stream() == s)

    with s:
        for _ in range(3):
            t = threading.Thread(target=look)
            t.start()
            t.join(LIMIT)
            assert hs.current_stream() is s
    assert seen == [False, True, True, True, False] * 3
    assert hs.current_stream() != s


def test_T3_a_copied_context_counts_on_its_own_thread_only() -> None:
    s, seen = hs.Stream(), []
    with s:
        there = contextvars.copy_context()
    there.run(lambda: seen.append(hs.current_stream() is s))
    t = threading.Thread(target=there.run, args=(lambda: seen.append(hs.current_stream() == s),))
    t.start()
    t.join(LIMIT)
    assert seen == [True, False]


def test_T2_contexts_that_end_out_of_order_are_taken_out() -> None:
    a, b = hs.Stream(), hs.Stream()
    a.__enter__()
    b.__enter__()
    a.__exit__(None, None, None)
    assert hs.current_stream() is b
    b.__exit__(None, None, None)
    with pytest.raises(IndexError):
        a.__exit__(None, None, None)
