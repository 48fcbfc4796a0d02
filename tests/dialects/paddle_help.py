"""What the tests of the paddle dialect share."""

from __future__ import annotations

import os

#: A custom device type that can be used here. The host's is registered; npu is only
#: taken for what it means to programs, on every backend.
CUSTOM = "custom_cpu" if os.environ.get("HALSTREAM_BACKEND") == "host" else "npu"
#: The custom types that are registered.
REGISTERED = [CUSTOM] if CUSTOM == "custom_cpu" else []
