"""Where programs come from: recorded models, exported programs and saved archives."""
