"""The tools that keep the house: run a notebook, check parameters, compare with the papers, render
the README.

They stand above the chapters; no chapter imports them. `python -m compendium --help` lists the
commands.
"""
