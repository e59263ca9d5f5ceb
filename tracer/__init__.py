"""Sources of programs: recorded models, exported programs and saved archives."""
