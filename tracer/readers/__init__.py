"""Readers of programs that torch has traced: graphs of torch.fx, exported programs and archives."""
