"""What all tests of rules have in common."""

import torch

torch.set_num_threads(1)  # tensors of a few elements: threads only wait for each other
