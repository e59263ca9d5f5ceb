"""The sizes that an export should accept, and the evidence from further traces."""
