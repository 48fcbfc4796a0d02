"""One file for each runtime that is measured, halstream included.

Each has a `PEER`, which the runner reads in its own interpreter, and a
`measure(sheet)`, which runs in the peer's.
"""
