"""Loops over sizes that become scans."""
