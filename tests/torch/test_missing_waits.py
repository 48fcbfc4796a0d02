"""Programs with a wait missing, one run each: reported without it, silent with it."""

from __future__ import annotations

from typing import Any

import halstream as hs
import pytest
from shapes import SHAPES

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("program", SHAPES, ids=lambda program: program.__name__)
def test_V1_a_missing_wait_is_reported_and_the_complete_order_is_not(torch: Any, program: Any) -> None:
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        program(torch, True)
        torch.cuda.synchronize()
    assert not report.all, str(report)
    with hs.sanitize(on="collect") as report:
        program(torch, False)
        torch.cuda.synchronize()
    assert report.races or report.refills, str(report)
