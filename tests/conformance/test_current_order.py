"""The current stream where contexts end in another order than they began, and in asyncio tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import halstream as hs
import pytest

LIMIT = 10.0

pytestmark = pytest.mark.usefixtures("backend")


def core(s: hs.Stream) -> AbstractContextManager[Any]:
    return s


def torch(s: hs.Stream) -> AbstractContextManager[Any]:
    from halstream.torch import cuda

    return cuda.stream(s)


def paddle(s: hs.Stream) -> AbstractContextManager[Any]:
    from halstream.paddle import device

    return device.stream_guard(s)


def paddle_cuda(s: hs.Stream) -> AbstractContextManager[Any]:
    from halstream.paddle.device.cuda import _guard

    return _guard(s)


def mindspore(s: hs.Stream) -> AbstractContextManager[Any]:
    from halstream.mindspore import hal

    return hal.StreamCtx(s)


GUARDS = [core, torch, paddle, paddle_cuda, mindspore]
guards = pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.__name__)


def block(guard: Callable[[hs.Stream], AbstractContextManager[Any]], s: hs.Stream) -> Iterator[None]:
    with guard(s):
        yield


@guards
def test_T2_the_generator_that_ends_first_takes_only_its_own_context_away(
    guard: Callable[[hs.Stream], AbstractContextManager[Any]],
) -> None:
    before = hs.current_stream()
    first, second = hs.Stream(), hs.Stream()
    one, two = block(guard, first), block(guard, second)
    next(one)
    next(two)
    assert hs.current_stream() == second
    one.close()  # type: ignore[attr-defined]
    assert hs.current_stream() == second
    two.close()  # type: ignore[attr-defined]
    assert hs.current_stream() == before  # before the fix: the stream of the closed block


@guards
def test_T2_three_contexts_may_end_in_any_order(
    guard: Callable[[hs.Stream], AbstractContextManager[Any]],
) -> None:
    import itertools

    streams = [hs.Stream() for _ in range(3)]
    for order in itertools.permutations(range(3)):
        blocks = [block(guard, s) for s in streams]
        for one in blocks:
            next(one)
        left = [0, 1, 2]
        for ended in order:
            blocks[ended].close()  # type: ignore[attr-defined]
            left.remove(ended)
            expected = streams[left[-1]] if left else hs.Device(0).default_stream
            assert hs.current_stream() == expected, (order, ended)


def test_T2_settings_end_with_the_context_they_were_made_in() -> None:
    first, second, inner, outer = (hs.Stream() for _ in range(4))
    first.__enter__()
    hs.use(inner)
    second.__enter__()
    hs.use(outer)
    first.__exit__()
    assert hs.current_stream() is outer
    second.__exit__()
    assert hs.current_stream() == hs.Device(0).default_stream


def test_T2_a_device_context_that_ends_first_leaves_the_streams_one() -> None:
    s = hs.Stream(1)
    device = hs.Device(1)
    device.__enter__()
    with hs.Device(0):
        with hs.Stream(0) as inner:
            device.__exit__()
            assert hs.current_device() == hs.Device(0)
            assert hs.current_stream() is inner
        assert hs.current_device() == hs.Device(0)
    assert hs.current_device() == hs.Device(0)
    with s:
        assert hs.current_device() == hs.Device(1)
    assert hs.current_device() == hs.Device(0)


@guards
def test_T2_leaving_a_context_that_was_not_entered_is_an_error_and_changes_nothing(
    guard: Callable[[hs.Stream], AbstractContextManager[Any]],
) -> None:
    s, other = hs.Stream(), hs.Stream()
    with s:
        if guard is core:
            with pytest.raises(IndexError):
                other.__exit__()
        assert hs.current_stream() is s


def set_core(s: hs.Stream) -> None:
    hs.use(s)


def set_torch(s: hs.Stream) -> None:
    from halstream.torch import cuda

    cuda.set_stream(s)


def set_accelerator(s: hs.Stream) -> None:
    from halstream.torch import accelerator

    accelerator.set_stream(s)


def set_cupy(s: hs.Stream) -> None:
    from halstream.cupy import cuda

    cuda.Stream._wrap(s).use()


@pytest.mark.parametrize("choose", [set_core, set_torch, set_accelerator, set_cupy], ids=lambda f: f.__name__)
def test_T4_a_stream_set_in_one_task_is_not_seen_in_another(choose: Callable[[hs.Stream], None]) -> None:
    before = hs.current_stream()
    ours, theirs, childs = hs.Stream(), hs.Stream(), hs.Stream()

    async def main() -> None:
        choose(ours)
        turn = [asyncio.Event(), asyncio.Event()]

        async def other() -> None:
            assert hs.current_stream() == ours  # what its maker had
            choose(theirs)
            turn[0].set()
            await turn[1].wait()
            assert hs.current_stream() == theirs
            with hs.Stream() as inner:
                assert hs.current_stream() is inner
                await asyncio.create_task(child())
            assert hs.current_stream() == theirs

        async def child() -> None:
            choose(childs)
            assert hs.current_stream() == childs

        task = asyncio.create_task(other())
        await turn[0].wait()
        assert hs.current_stream() == ours
        turn[1].set()
        await task
        assert hs.current_stream() == ours

    asyncio.run(asyncio.wait_for(main(), LIMIT))
    assert hs.current_stream() == before


def test_T4_a_device_set_in_one_task_is_not_seen_in_another() -> None:
    async def main() -> None:
        async def other() -> None:
            hs.set_device(1)
            assert hs.current_device() == hs.Device(1)

        await asyncio.create_task(other())
        assert hs.current_device() == hs.Device(0)

    asyncio.run(asyncio.wait_for(main(), LIMIT))
    assert hs.current_device() == hs.Device(0)


def test_T4_the_process_wide_setters_hold_for_every_task() -> None:
    """paddle's and mindspore's set_stream choose for the process, as in the real packages."""
    from halstream.paddle import device

    s, own = hs.Stream(), hs.Stream()

    async def main() -> None:
        hs.use(own)
        await asyncio.create_task(other())
        assert hs.current_stream() is own  # the task chose its own before
        device.set_stream(s)
        assert hs.current_stream() is s

    async def other() -> None:
        device.set_stream(s)
        assert hs.current_stream() is s

    asyncio.run(asyncio.wait_for(main(), LIMIT))
    assert hs.current_stream() is s


def test_T4_a_loop_of_settings_in_a_task_does_not_grow_the_stack() -> None:
    from halstream._core import _current

    async def main() -> None:
        for _ in range(50):
            hs.use(hs.Stream())
            hs.set_device(0)
        depth, entry = 0, _current.innermost.get()
        while entry is not None:
            depth, entry = depth + 1, entry.below
        assert depth <= 2

    asyncio.run(asyncio.wait_for(main(), LIMIT))
