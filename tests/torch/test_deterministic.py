"""`torch.use_deterministic_algorithms`: new memory is filled, by a kernel of the current stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import pytest
from halstream.testing import schedule

pytestmark = pytest.mark.filterwarnings("ignore")

MAKES: dict[str, Callable[[Any], Any]] = {
    "empty": lambda torch: torch.empty(8, device="cuda"),
    "empty, channels last": lambda torch: torch.empty(1, 2, 2, 2, device="cuda", memory_format=torch.channels_last),
    "empty_like": lambda torch: torch.empty_like(torch.zeros(2, 4, device="cuda")),
    "empty_strided": lambda torch: torch.empty_strided((4, 2), (1, 4), device="cuda"),
    "new_empty": lambda torch: torch.zeros(1, device="cuda").new_empty(8),
    "resize_": lambda torch: torch.zeros(0, device="cuda").resize_(8),
}


@pytest.fixture
def deterministic(torch: Any) -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", MAKES)
def test_new_memory_is_filled_on_the_current_stream(torch: Any, deterministic: None, held: Any, name: str) -> None:
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    gate = held(side)
    with torch.cuda.stream(side):
        made = MAKES[name](torch)
    assert not side.query()
    gate.open()
    side.synchronize()
    assert made.isnan().all().item()


def test_integers_get_their_highest_value_and_what_was_there_stays(torch: Any, deterministic: None) -> None:
    assert torch.empty(3, dtype=torch.int16, device="cuda").tolist() == [32767] * 3
    assert torch.empty(2, dtype=torch.bool, device="cuda").tolist() == [True, True]
    grown = torch.ones(2, device="cuda").resize_(3)
    assert grown[:2].tolist() == [1, 1] and math.isnan(grown[2].item())


def test_nothing_is_filled_where_that_is_switched_off(torch: Any, deterministic: None) -> None:
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        side = torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            for make in MAKES.values():
                make(torch)  # some also fill the tensors that they are made of
            side.synchronize()
            torch.empty(8, device="cuda")
        assert side.query()
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True


@pytest.mark.parametrize("name", MAKES)
def test_V1_a_first_use_on_another_stream_needs_an_order_behind_the_fill(
    torch: Any, deterministic: None, name: str
) -> None:
    for ordered in (True, False):
        side = torch.cuda.Stream()
        torch.cuda.synchronize()
        with schedule("fifo"), hs.sanitize(on="collect") as report:
            made = MAKES[name](torch)
            if ordered:
                side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                made.zero_()
            torch.cuda.synchronize()
        assert bool(report.races) != ordered, str(report)
