"""The work of workers: the questions, the processes that answer them, and the runner that starts these."""
