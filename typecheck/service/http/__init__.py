"""Requests: routes, schemas, tokens, limits, uploads and pages."""
