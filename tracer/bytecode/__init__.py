"""What the code of a running function says: variables, handlers, conditions, origins."""
