"""Conditions for a program to run: dims, shapes, constraints and the rules that state them."""
