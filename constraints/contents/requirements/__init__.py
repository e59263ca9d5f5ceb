"""Requirements of operators on the elements of their operands, indices among them."""
