"""Where a wait is suggested when the stream's name means nothing at the second access (programs of the real torch)."""

from __future__ import annotations

from pathlib import Path

import pytest
from halstream._checks import remedy as _remedy
from halstream._checks import source as _source
from halstream._sites import Frame

PROGRAM = """
import torch

loader = torch.cuda.Stream()


class Prefetcher:
    def __init__(self):
        self.stream = torch.cuda.Stream()
        self.preload()

    def preload(self):
        with torch.cuda.stream(self.stream):
            self.batch = load()
            self.batch.mul_(2)

    def next(self):
        batch = self.batch
        self.preload()
        return batch


def train(own):
    local = torch.cuda.Stream()
    for _ in range(2):
        step(local)
"""
LINES = {text.strip(): number for number, text in enumerate(PROGRAM.splitlines(), 1)}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def at(file: str, line: str) -> _source.Statement:
    found = _source.statement(file, LINES[line])
    assert found is not None
    return found


def test_names_of_functions_and_of_the_module_are_known(file: str) -> None:
    here = at(file, "step(local)")
    for name in ("local", "own", "loader", "torch", "Prefetcher"):
        assert here.knows(name), name
    for name in ("self", "batch", "stream", "nothing"):
        assert not here.knows(name), name
    assert not at(file, "self.batch.mul_(2)").knows("local")


def test_the_end_of_a_stream_context(file: str) -> None:
    assert at(file, "self.batch = load()").block_end() == LINES["self.batch.mul_(2)"]
    assert at(file, "step(local)").block_end() == LINES["step(local)"]


def test_the_methods_that_hand_an_attribute_out(file: str) -> None:
    here = at(file, "self.batch = load()")
    assert here.readers("batch") == [LINES["batch = self.batch"]]
    assert here.readers("stream") == []
    assert at(file, "step(local)").readers("batch") == []


def test_self_means_the_same_in_the_methods_of_one_class(file: str) -> None:
    origin = (Frame(file, LINES["self.batch = load()"], "Prefetcher.preload"),)
    assert _remedy._resolves("self.stream", Frame(file, LINES["batch = self.batch"], "Prefetcher.next"), origin)
    assert not _remedy._resolves("self.stream", Frame(file, LINES["step(local)"], "train"), origin)
    assert _remedy._resolves("loader", Frame(file, LINES["step(local)"], "train"), origin)
    assert not _remedy._resolves("unknown", Frame(file, LINES["step(local)"], "train"), origin)
