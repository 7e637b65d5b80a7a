#compdef leasehold
# Completion of leasehold in zsh. In ~/.zshrc, after compinit: source <(leasehold completion zsh)
# `leasehold __complete` returns the candidates. The body is also valid bash, so that it can be tested without zsh.

_leasehold() {
  local kind= candidate does
  local -a shown
  while IFS=$'\t' read -r candidate does; do
    shown=("$candidate${does:+  -- $does}")
    if [[ -z $kind ]]; then kind=$candidate
    elif [[ $candidate == *[/=] ]]; then compadd -l -S '' -d shown -- "$candidate"
    else compadd -l -d shown -- "$candidate"
    fi
  done < <(command leasehold __complete -- "${words[@]:1:$((CURRENT - 2))}" "$PREFIX" 2>/dev/null)
  case $kind in
    file | directory) if [[ $PREFIX == --*=* ]]; then compset -P '*='; fi ;;
  esac
  case $kind in
    file) _files ;;
    directory) _files -/ ;;
    command) _command_names -e ;;
  esac
}
compdef _leasehold leasehold
