"""cupy.cuda.runtime (cupy 14.2.0): streams, events, devices and memory by number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._constants import *  # noqa: F403
from ._copies import *  # noqa: F403
from ._device_limits import *  # noqa: F403
from ._devices import *  # noqa: F403
from ._errors import CUDARuntimeError as CUDARuntimeError
from ._errors import not_built as _not_built
from ._events import *  # noqa: F403
from ._graphs import *  # noqa: F403
from ._memory_functions import *  # noqa: F403
from ._mempools import *  # noqa: F403
from ._properties import *  # noqa: F403
from ._streams import *  # noqa: F403

__getattr__: Callable[[str], Any] = _not_built(__name__)
