"""``softgeom completion bash|zsh``: a script for the shell, made from the commands themselves."""

from __future__ import annotations

import argparse
from typing import Any

from softgeom.checkpoints.released import RELEASED
from softgeom.commands.boundary import DONE

_SCRIPT = """{prelude}_softgeom() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "{verbs}" -- "$word")); return; fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word") $(compgen -W "{models}" -- "$word")) ;;
  esac
}}
complete -o filenames -F _softgeom softgeom
"""


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "completion", help='print a completion script: eval "$(softgeom completion bash)"'
    )
    parser.add_argument("shell", choices=["bash", "zsh"])
    parser.set_defaults(run=lambda options: run(options, commands.choices))


def run(options: argparse.Namespace, parsers: dict[str, argparse.ArgumentParser]) -> int:
    """Print the script."""
    cases = []
    for verb, parser in parsers.items():
        flags = sorted(flag for flag in parser._option_string_actions if flag.startswith("--"))
        cases.append(f'    {verb}) local options="{" ".join(flags)}" ;;')
    prelude = "autoload -U +X bashcompinit && bashcompinit\n" if options.shell == "zsh" else ""
    script = _SCRIPT.format(
        prelude=prelude, verbs=" ".join(parsers), cases="\n".join(cases), models=" ".join(RELEASED)
    )
    print(script, end="")
    return DONE
