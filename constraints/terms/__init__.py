"""Terms and formulas over sizes, rewriting, quantifiers, and rows of unknown rank."""
