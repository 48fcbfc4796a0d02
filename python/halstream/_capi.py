"""The C interface: where its header is, and the table of its functions."""

from __future__ import annotations

import os
from typing import Any

from . import _native

__all__ = ["get_api", "get_include"]


def get_include() -> str:
    """Return the folder of ``halstream.h``, for a compiler's ``-I``.

    Returns
    -------
    str
        An absolute path.
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def get_api() -> Any:
    """Return the table of the C functions, and open the backend if no call has done so.

    Returns
    -------
    PyCapsule
        Its name is ``HALSTREAM_API_CAPSULE`` of ``halstream.h``, its pointer a
        ``const halstream_api *`` that stays valid until the process ends.

    Raises
    ------
    BackendAbsentError
        If no backend can be used.

    Examples
    --------
    >>> import halstream
    >>> halstream.get_api()  # doctest: +ELLIPSIS
    <capsule object "halstream._halstream.api" at 0x...>
    """
    _native.backend()
    return _native.extension().api
