"""``softgeom completion bash|zsh``: a script for the shell.

The script is a file, ``completion.bash``, so that a shell starts without importing anything; a test
compares it with `script`, which makes it from the commands themselves.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from softgeom.commands.boundary import DONE

FILE = Path(__file__).with_name("completion.bash")
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"
_SCRIPT = """_softgeom() {{
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


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("shell", choices=["bash", "zsh"])
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    print((_ZSH if options.shell == "zsh" else "") + FILE.read_text(encoding="utf-8"), end="")
    return DONE


def script() -> str:
    """The script, from the options of every verb and the names of the released models."""
    from softgeom.checkpoints.released import RELEASED
    from softgeom.commands import VERBS, parser_for

    (verbs,) = parser_for(VERBS)._subparsers._group_actions  # type: ignore[union-attr]
    cases = []
    for verb, parser in verbs.choices.items():  # type: ignore[union-attr]
        flags = sorted(flag for flag in parser._option_string_actions if flag.startswith("--"))
        cases.append(f'    {verb}) local options="{" ".join(flags)}" ;;')
    return _SCRIPT.format(verbs=" ".join(VERBS), cases="\n".join(cases), models=" ".join(RELEASED))
