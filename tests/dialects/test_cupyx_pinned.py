"""cupyx's arrays in pinned memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from halstream import cupyx


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("dtype", ["O", [("number", "i4"), ("object", "O")]])
def test_pinned_memory_holds_no_python_objects(dtype: Any) -> None:
    """NumPy would take what is in the memory for references; that ended the process."""
    like = np.zeros(2, dtype)
    for make in (
        lambda: cupyx.empty_pinned(2, dtype),
        lambda: cupyx.zeros_pinned(2, dtype),
        lambda: cupyx.empty_like_pinned(like),
        lambda: cupyx.zeros_like_pinned(like),
    ):
        with pytest.raises(ValueError, match="cannot hold Python objects"):
            make()
