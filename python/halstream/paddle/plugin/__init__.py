"""The real Paddle on halstream's host device, as its custom device.

Import it before Paddle::

    import halstream.paddle.plugin
    import paddle

    paddle.set_device("custom_cpu")

`halstream.paddle` itself mirrors Paddle's names, and has nothing to do with an installed Paddle.
"""

from ._errors import PluginError
from ._plugin import device_type, install, operators, patch, undo

__all__ = ["PluginError", "device_type", "install", "operators", "patch", "undo"]

install()
