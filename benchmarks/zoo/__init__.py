"""Architectures of public packages, built small and without a network: a table per package.

`CATALOGUE` is all of them. Importing it imports torch and no other package: a model's package is imported
when the model is built.
"""
