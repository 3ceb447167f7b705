"""``softgeom completion bash|zsh``: a script for the shell, from the options of every verb."""

from __future__ import annotations

from softgeom.commands import VERBS, make_parser
from softgeom.commands.boundary import DONE

_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"
_SCRIPT = """_softgeom() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "{verbs}" -- "$word")); return; fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _softgeom softgeom
"""


def completion(shell: str) -> int:
    """Print the script."""
    (verbs,) = make_parser()._subparsers._group_actions  # type: ignore[union-attr]
    cases = []
    for verb, parser in verbs.choices.items():  # type: ignore[union-attr]
        flags = sorted(flag for flag in parser._option_string_actions if flag.startswith("--"))
        cases.append(f'    {verb}) local options="{" ".join(flags)}" ;;')
    script = _SCRIPT.format(verbs=" ".join(VERBS), cases="\n".join(cases))
    print((_ZSH if shell == "zsh" else "") + script, end="")
    return DONE
