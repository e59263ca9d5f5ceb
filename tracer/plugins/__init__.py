"""Stand-ins for Python functions of other packages, which these packages, or anyshape, bring."""
