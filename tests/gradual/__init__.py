"""Gradual typing: graphs with types, migrations, branches, and the entry exam."""
