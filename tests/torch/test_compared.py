"""compare_compiled and --stream-compiled: does what torch.compile makes of a function keep its waits?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import halstream as hs
import halstream.torch as ht
import pytest

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

LOST = "torch.compile lost an order"


@pytest.fixture(autouse=True)
def fresh(torch: Any) -> None:
    """Compile anew in each test."""
    torch._dynamo.reset()


def _forked(torch: Any, side: Any, waits: bool) -> Any:
    def function(x: Any) -> Any:
        y = x * 2
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            z = y.sin()
        if waits:
            torch.cuda.current_stream().wait_stream(side)
        return z + 1

    return function


def _forgetful(torch: Any, side: Any) -> Any:
    """Return a compiler that makes code in which the last wait is missing."""

    def compile(graph: Any, inputs: Any) -> Any:
        return lambda x: (_forked(torch, side, waits=False)(x),)

    return compile


@pytest.mark.parametrize("options", [{}, {"mode": "reduce-overhead"}], ids=str)
def test_F35_what_the_compiler_makes_keeps_the_waits(torch: Any, options: Any) -> None:
    ht.compare_compiled(_forked(torch, torch.cuda.Stream(), True), torch.ones(64, device="cuda"), options=options)


def test_F35_an_order_that_the_compiler_lost_is_an_error(torch: Any) -> None:
    side, x = torch.cuda.Stream(), torch.ones(64, device="cuda")
    with pytest.raises(hs.UnorderedAccessError) as error:
        ht.compare_compiled(_forked(torch, side, True), x, options={"backend": _forgetful(torch, side)})
    text = str(error.value)
    assert text.startswith(LOST) and "aten::sin writes on" in text
    assert f"{Path(__file__).name}:" in text and "fix: none in the program" in text
    assert error.value.report.races  # type: ignore[attr-defined]


def test_an_order_that_the_function_lacks_itself_is_said_to_be_its_own(torch: Any) -> None:
    with pytest.raises(hs.UnorderedAccessError, match=r"without torch\.compile neither") as error:
        ht.compare_compiled(_forked(torch, torch.cuda.Stream(), False), torch.ones(64, device="cuda"))
    assert ".wait_stream(" in str(error.value)


def test_what_surrounds_the_call_takes_part(torch: Any) -> None:
    side = torch.cuda.Stream()

    def reads_its_input_at_once(x: Any) -> Any:
        with torch.cuda.stream(side):
            y = x * 2
        side.synchronize()
        return y

    with pytest.raises(hs.UnorderedAccessError, match="aten::copy_ writes on the default stream"):
        ht.compare_compiled(reads_its_input_at_once, torch.ones(64, device="cuda"))


TEST = """
import pytest, torch

side = torch.cuda.Stream()

def function(x, waits=True):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x.sin()
    if waits:
        torch.cuda.current_stream().wait_stream(side)
    return y + 1

def forgetful(graph, inputs):
    return lambda x: (function(x, waits=False),)

@pytest.mark.parametrize("backend", ["inductor", forgetful], ids=["kept", "lost"])
def test_step(backend):
    torch.compile(function, backend=backend)(torch.ones(64, device="cuda"))

def test_own():
    function(torch.ones(64, device="cuda"), waits=False)
"""


def test_tests_run_as_they_are_written_and_compiled(tmp_path: Path) -> None:
    (tmp_path / "test_steps.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--stream-torch", "--stream-compiled"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, env=os.environ)
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    lost, _, own = done.stdout.partition("short test summary")[0].partition("_ test_own _")
    assert LOST in lost and LOST not in own and "fix: before" in own
