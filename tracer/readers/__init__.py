"""Programs that others have traced: graphs of torch.fx, exported programs and archives."""
