"""acl (pyACL of CANN 8.5): the stream layer, over any device of the runtime.

``from halstream import acl`` stands for ``import acl``; `acl.rt` and `acl.util`
are its modules. pyACL exports no constants; this package has those of the C
headers as an addition (``acl.ACL_EVENT_SYNC``), and `acl.mdl` has captures, for
which pyACL has no names either.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from .. import _core
from .._dialects._not_built import not_built
from .._errors import HalError
from . import _buffers, constants, mdl, rt, util
from . import _codes as codes
from ._buffers import *  # noqa: F403
from ._call import command as _command
from ._session import session
from ._table import refuse
from .constants import *  # noqa: F403

__all__ = [
    *_buffers.__all__,
    *constants.__all__,
    "app_log",
    "finalize",
    "finalize_reference",
    "get_recent_err_msg",
    "get_soc_name",
    "get_version",
    "init",
    "mdl",
    "rt",
    "util",
]

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def _settings(path: str) -> str:
    """Return the settings of a JSON file in one form, so that equal ones compare equal."""
    try:
        with open(path, encoding="utf-8") as file:
            read = json.load(file)
    except OSError as exc:
        raise refuse(codes.INVALID_FILE, f"{path}: {exc.strerror}") from None
    except ValueError as exc:
        raise refuse(codes.PARSE_FILE, f"{path}: {exc}") from None
    if not isinstance(read, dict):
        raise refuse(codes.PARSE_FILE, f"{path}: not a JSON object")
    return json.dumps(read, sort_keys=True) if read else ""


def _default_device(settings: dict[str, object]) -> int | None:
    entry = settings.get("defaultDevice")
    number = entry.get("default_device") if isinstance(entry, dict) else None
    if number is None:
        return None
    if not str(number).isdecimal():
        raise refuse(codes.INVALID_PARAM, f"default_device is a number, not {number!r}")
    return _core.ordinal(int(str(number)))


@_command("*s", home="acl", invalid_value=codes.INVALID_PARAM)
def init(config_path: str = "", /) -> int:
    """aclInit: one user more; 100002 from the second call on, which counts all the same.

    Of the settings ``defaultDevice`` and ``err_msg_mode`` have an effect.
    """
    text = _settings(config_path) if config_path else ""
    settings = json.loads(text) if text else {}
    default = _default_device(settings)
    if session.begin(text) > 1:
        return codes.REPEAT_INITIALIZE
    session.default_device = default
    session.one_text = str(settings.get("err_msg_mode", "0")) == "1"
    return codes.SUCCESS


@_command(home="acl", invalid_value=codes.REPEAT_FINALIZE)
def finalize(*_: object) -> int:
    """aclFinalize: no user is left, however many there were."""
    session.end(everyone=True)
    return 0


@_command(failed=(0,), home="acl", invalid_value=codes.REPEAT_FINALIZE)
def finalize_reference(*_: object) -> tuple[int, int]:
    """aclFinalizeReference: (users left, ret)."""
    return session.end(), 0


@_command(failed=(0, 0, 0), home="acl")
def get_version(*_: object) -> tuple[int, int, int, int]:
    """aclrtGetVersion: (major, minor, patch, ret) of the interface that is mirrored."""
    return (
        constants.ACL_MAJOR_VERSION,
        constants.ACL_MINOR_VERSION,
        constants.ACL_PATCH_VERSION,
        0,
    )


def get_soc_name(*_: object) -> str | None:
    """aclrtGetSocName: name of the device, of no Ascend chip unless it is one."""
    try:
        return _core.Device(0).name
    except HalError:
        return None


def get_recent_err_msg(*_: object) -> str | None:
    """aclGetRecentErrMsg: text of this thread's last failure, once; None if there is none."""
    return session.take_text()


@_command("is", home="acl")
def app_log(level: int, text: str, /) -> None:
    """aclAppLog: to the logger ``halstream.acl``."""
    logging.getLogger(__name__).log(_LEVELS[min(max(level, 0), 3)], "%s", text)


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
