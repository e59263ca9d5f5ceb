"""`export`: from a model to a program of torch's that takes exactly the sizes that the model takes."""
