"""Facts about the elements of tensors that follow from sizes."""
