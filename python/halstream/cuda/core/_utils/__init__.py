"""cuda.core._utils (1.2.2): where the package's exceptions are."""
