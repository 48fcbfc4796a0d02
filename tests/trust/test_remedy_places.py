"""Which names are bound where a line may go."""

from __future__ import annotations

from pathlib import Path

import pytest
from halstream._checks import source as _source

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
