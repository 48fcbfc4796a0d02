"""ACL's numbers: event, stream and callback constants, and every error code.

pyACL itself exports none; programs define their own from the C headers, where these come from. Strict mode hides them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._dialects._not_built import not_built
from ._ascendcl import *  # noqa: F403

if TYPE_CHECKING:

    def __getattr__(name: str) -> int: ...

else:
    __getattr__ = not_built(__name__)


__all__ = [name for name in globals() if name.startswith("ACL_")]
