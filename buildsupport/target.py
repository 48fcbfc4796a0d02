"""What the extensions are compiled for: the stable interface of CPython, and the operating system."""

import os
import sys
import sysconfig

#: Whether one file serves every CPython from 3.10 on. The free-threaded builds have no stable interface.
ABI3 = not sysconfig.get_config_var("Py_GIL_DISABLED")


def defines():
    """Return the C compiler's options that choose the interface of CPython."""
    return ["-DPy_LIMITED_API=0x030A0000"] if ABI3 else []


def goos():
    """Return Go's name of the operating system, which GOOS gives when it is another one than this."""
    return os.environ.get("GOOS") or sys.platform
