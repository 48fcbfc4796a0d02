"""The stand-ins, each under the name of the package that it stands in for.

The modules are executed under those names. What they share is in `halstream.torch.standins`.
"""
