"""The command line: starts, stops and looks at a daemon, and manages accounts beside it (cli.md sections 1 to 5)."""

from nerve.cli.commands import main

__all__ = ["main"]
