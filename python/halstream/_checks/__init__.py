"""The sanitizer: what is looked for, and how it is reported."""
