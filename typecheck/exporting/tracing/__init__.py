"""torch's own tracing, and what it calls in place of functions that would make numbers of sizes."""
