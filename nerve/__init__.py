"""Nerve: a self-hosted server that gives AI agents a home."""

__version__ = "0.1.0"
