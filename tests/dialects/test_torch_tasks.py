"""The current stream of torch.cuda, of tasks and of streams from elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream.torch import cuda

pytestmark = [pytest.mark.dialect("torch"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0


def test_contexts_belong_to_tasks() -> None:
    async def main() -> None:
        entered, looked = asyncio.Event(), asyncio.Event()
        s = cuda.Stream()

        async def inside() -> None:
            with cuda.stream(s):
                entered.set()
                await looked.wait()
                assert cuda.current_stream() is s

        task = asyncio.create_task(inside())
        await entered.wait()
        assert cuda.current_stream() == cuda.default_stream()
        looked.set()
        await task

    asyncio.run(asyncio.wait_for(main(), LIMIT))


def test_streams_of_other_dialects_can_be_current() -> None:
    s = hs.Stream(1)
    with cuda.stream(s):
        assert type(cuda.current_stream()) is cuda.Stream
        assert cuda.current_stream().cuda_stream == s.handle
        assert hs.current_stream() is s


def test_changing_the_backend_forgets_the_pool(child: Callable[..., Any]) -> None:
    done = child(
        """
        import halstream as hs
        from halstream.torch import cuda

        s = cuda.Stream()
        s.synchronize()
        try:
            hs.use_backend("host")
        except hs.InvalidValueError as exc:
            assert "alive" in str(exc)
        else:
            raise SystemExit("a stream that is held was closed")
        del s
        hs.use_backend("host")
        cuda.Stream().synchronize()
        """
    )
    assert done.returncode == 0, done.stderr
