"""Facts read from the code of a running function: variables, handlers, conditions, origins."""
