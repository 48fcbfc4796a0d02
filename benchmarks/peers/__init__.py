"""What is measured: halstream and the runtimes beside it, one module each."""
