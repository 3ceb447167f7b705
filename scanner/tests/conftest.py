"""Fixtures of the scanner's tests."""

from scanner_fixtures import *  # noqa: F403, fixtures are found by their names
