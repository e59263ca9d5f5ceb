"""Shapes as claims of a test."""
