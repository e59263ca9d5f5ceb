"""Stand-ins for sizes, tensors and sequences, which a program gets while it is recorded."""
