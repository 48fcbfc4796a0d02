"""An operator that fails loses its device, as an assertion in a kernel of CUDA does: nothing after it is handed out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BEGIN = """
import halstream.torch as ht
ht.redirect()
import torch
embedding = torch.nn.Embedding(4, 2).cuda()
wrong = torch.tensor([9], device="cuda")
torch.cuda.synchronize()
def raises(call):
    try:
        value = call()
    except torch.AcceleratorError as exc:
        assert "device-side assert" in str(exc) and "aten::embedding: index out of range" in str(exc), exc
        return
    raise AssertionError(f"{value!r} was handed out")
"""


def _run(program: Any, source: str, code: int = 0) -> str:
    done = program(BEGIN + source)
    assert done.returncode == code, done.stdout + done.stderr
    return str(done.stderr)


def test_D7_no_value_of_a_stream_that_waited_for_the_failed_operator_is_handed_out(program: Any) -> None:
    _run(
        program,
        """
        side, event = torch.cuda.Stream(), torch.cuda.Event()
        other = torch.ones(2, device="cuda")
        with torch.cuda.stream(side):
            y = embedding(wrong)
            event.record()
        torch.cuda.current_stream().wait_stream(side)
        raises(lambda: y.sum().item())
        for again in range(2):
            raises(other.tolist)
            raises(other.cpu)
            raises(lambda: torch.ones(2, device="cuda"))
            raises(torch.cuda.synchronize)
            raises(side.synchronize)
            raises(torch.cuda.Stream().query)
            raises(event.query)
            raises(event.synchronize)
        del y, other
        torch.cuda.empty_cache()
        """.replace("\n        ", "\n"),
    )


def test_D7_other_threads_and_autograd_get_the_error_and_another_device_works(program: Any) -> None:
    _run(
        program,
        """
        import threading
        leaf = torch.ones(2, device="cuda", requires_grad=True)
        loss = (leaf * 2).sum()
        there = torch.ones(3, device="cuda:1")
        embedding(wrong)
        raises(torch.cuda.synchronize)
        raises(loss.backward)
        seen = []
        def look():
            raises(leaf.tolist)
            seen.append("error")
        thread = threading.Thread(target=look)
        thread.start()
        thread.join(60)
        assert seen == ["error"]
        assert there.sum().item() == 3
        """.replace("\n        ", "\n"),
    )


def test_D7_an_operator_that_fails_in_a_replay(program: Any) -> None:
    _run(
        program,
        """
        index = torch.zeros(1, dtype=torch.long, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = embedding(index)
        index.fill_(9)
        graph.replay()
        raises(torch.cuda.synchronize)
        raises(y.tolist)
        """.replace("\n        ", "\n"),
    )


def test_D7_a_program_that_never_looked_says_so_and_ends_with_1(program: Any) -> None:
    said = _run(program, "embedding(wrong)\n", code=1)
    (line,) = [line for line in said.splitlines() if line.startswith("halstream:")]
    assert "ended without a look at the error of cuda:0: aten::embedding: index out of range" in line


def test_D7_a_program_that_handled_the_error_ends_as_it_wants(program: Any) -> None:
    said = _run(program, "embedding(wrong)\nraises(torch.cuda.synchronize)\nraise SystemExit(5)\n", code=5)
    assert "halstream:" not in said


def test_F33_a_test_that_did_not_look_fails_and_the_next_one_finds_the_device_working(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(
        BEGIN
        + """
def test_that_loses_the_device():
    embedding(wrong)

def test_that_handles_it():
    embedding(wrong)
    raises(torch.cuda.synchronize)

def test_behind_them():
    assert torch.ones(2, device="cuda").sum().item() == 2
"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_two.py"],
        cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "aten::embedding: index out of range" in done.stdout
    assert "The device works again in the next test." in done.stdout


@pytest.mark.parametrize("options", [[], ["--sanitize"]], ids=["plain", "sanitize"])
def test_D7_halstream_run_ends_with_1(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "app.py").write_text(
        "import torch\nembedding = torch.nn.Embedding(4, 2).cuda()\nembedding(torch.tensor([9], device='cuda'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "halstream", "run", "--torch", *options, "app.py"],
        cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "aten::embedding: index out of range in self (app.py:3 in <module>)" in done.stderr
