"""Fixtures of the scanner's tests."""

from scanner_fixtures import asked_anew, javascript, repository, tool, within

__all__ = ["asked_anew", "javascript", "repository", "tool", "within"]
