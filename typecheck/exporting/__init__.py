"""`export`: makes an exported program that takes exactly the sizes that the model takes."""
