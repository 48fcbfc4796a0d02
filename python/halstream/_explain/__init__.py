"""What each kind of report means: pages that `halstream explain` prints and docs/errors shows."""
