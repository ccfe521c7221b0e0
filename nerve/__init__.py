"""Nerve: a self-hosted server that gives AI agents a home."""
