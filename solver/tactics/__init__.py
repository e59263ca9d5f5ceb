"""Methods to decide a question about sizes, from cheap to expensive."""
