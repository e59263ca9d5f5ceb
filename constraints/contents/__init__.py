"""What sizes say of the elements of tensors."""
