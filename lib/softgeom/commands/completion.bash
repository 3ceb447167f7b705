_softgeom() {
  local word="${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "inspect scan verify explain ceiling ask diff prune repair survey completion" -- "$word")); return; fi
  case "${COMP_WORDS[1]}" in
    inspect) local options="--all --help --json" ;;
    scan) local options="--after --backend --bias --block --bound --classes --device --exact --expected --fail-on --features --help --inputs --jobs --json --labels --labels-anyway --low --no-bias --out --quiet --revision --scheduler --script --seed --tokens --verdicts-only --weight --wider" ;;
    verify) local options="--bias --help --labels --labels-anyway --no-bias --revision --tokens --weight" ;;
    explain) local options="--after --bias --bound --features --help --labels --labels-anyway --low --no-bias --revision --tokens --weight" ;;
    ceiling) local options="--after --at --backend --bias --bound --features --from-scan --help --jobs --labels --labels-anyway --low --no-bias --out --revision --scheduler --seed --tokens --weight" ;;
    ask) local options="--after --among --bias --blocked-by --bound --experts --features --help --jobs --json --labels --labels-anyway --low --no-bias --on --order --out --revision --sample --seed --size --together --tokens --weight --with-layer" ;;
    diff) local options="--help --json" ;;
    prune) local options="--after --backend --bias --block --bound --close-too --device --features --help --jobs --labels --labels-anyway --longest --low --no-bias --out --results --revision --scheduler --seed --tokens --weight" ;;
    repair) local options="--bias --help --labels --labels-anyway --method --no-bias --out --revision --tokens --weight" ;;
    survey) local options="--after --backend --block --bound --device --features --help --jobs --json --low --scheduler --seed" ;;
    completion) local options="--help" ;;
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word") $(compgen -W "ppocr-v4 ppocr-v5 ppocr-v6 g2pm smollm2 birdnet" -- "$word")) ;;
  esac
}
complete -o filenames -F _softgeom softgeom
