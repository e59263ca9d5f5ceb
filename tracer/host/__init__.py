"""What is known of the insides of torch and CPython, and how they are replaced for a while."""
