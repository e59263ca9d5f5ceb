"""Whether the constraints hold, and what follows from them."""
