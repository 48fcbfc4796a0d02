"""What halstream and its peers cost; see run.py."""
