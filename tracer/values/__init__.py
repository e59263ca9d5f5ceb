"""What a program sees in place of sizes, tensors and sequences while it is recorded."""
