"""Sets and functions of one symbol, and intervals of terms."""
