"""torch's questions whether a stream takes part in a capture."""

from __future__ import annotations

import subprocess
import sys

import halstream as hs
import halstream.torch as torch
import pytest
from halstream.torch import cuda

pytestmark = [pytest.mark.dialect("torch"), pytest.mark.usefixtures("backend")]


@pytest.mark.row(92)
@pytest.mark.needs("graphs")
def test_a_stream_knows_whether_it_captures() -> None:
    s, other = cuda.Stream(), torch.Stream()
    assert s.is_capturing() is False
    with hs.capture(s), cuda.stream(s):
        assert s.is_capturing() is True
        assert cuda.is_current_stream_capturing() is True
        assert other.is_capturing() is False
        with cuda.stream(other):
            assert cuda.is_current_stream_capturing() is False
    assert s.is_capturing() is False
    assert cuda.is_current_stream_capturing() is False
    assert torch.Stream("cpu").is_capturing() is False


def test_whether_the_current_stream_captures_is_known_before_the_first_use() -> None:
    program = "from halstream.torch import cuda\nprint(cuda.is_current_stream_capturing(), cuda.is_initialized())\n"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == ["False", "False"]
