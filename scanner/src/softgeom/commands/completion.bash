_softgeom() {
  local word="${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "inspect scan verify explain ceiling ask diff prune repair survey completion" -- "$word")); return; fi
  case "${COMP_WORDS[1]}" in
    inspect) local options="--all --help --json" ;;
    scan) local options="--after --backend --bias --blank --block --bound --classes --device --exact --expected --fail-on --features --help --inputs --jobs --json --labels --low --no-bias --out --quiet --revision --rule --scheduler --script --seed --tokens --verdicts-only --weight --wider" ;;
    verify) local options="--bias --blank --help --labels --no-bias --revision --rule --tokens --weight" ;;
    explain) local options="--after --bias --blank --bound --features --help --labels --low --no-bias --revision --rule --tokens --weight" ;;
    ceiling) local options="--after --at --backend --bias --blank --bound --features --from-scan --help --jobs --labels --low --no-bias --out --revision --rule --scheduler --seed --tokens --weight" ;;
    ask) local options="--after --among --bias --blank --blocked-by --bound --experts --features --help --jobs --json --labels --low --no-bias --on --order --out --revision --rule --sample --seed --size --together --tokens --weight --with-layer" ;;
    diff) local options="--help --json" ;;
    prune) local options="--after --backend --bias --blank --block --bound --close-too --device --features --help --jobs --labels --longest --low --no-bias --out --results --revision --rule --scheduler --seed --tokens --weight" ;;
    repair) local options="--bias --blank --help --labels --method --no-bias --out --revision --rule --tokens --weight" ;;
    survey) local options="--after --backend --block --bound --device --features --help --jobs --json --low --scheduler --seed" ;;
    completion) local options="--help" ;;
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word") $(compgen -W "ppocr-v4 ppocr-v5 ppocr-v6 g2pm smollm2 birdnet" -- "$word")) ;;
  esac
}
complete -o filenames -F _softgeom softgeom
