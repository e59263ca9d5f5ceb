"""What workers do: the questions, the processes that answer them, and who starts these."""
