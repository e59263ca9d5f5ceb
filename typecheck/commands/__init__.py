"""The subcommands of `anyshape`, a file each: `add` declares one, and the function that it names runs it."""
