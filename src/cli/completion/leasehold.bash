# Completion of leasehold in bash, 3.2 and later. In ~/.bashrc: source <(leasehold completion bash)
# `leasehold __complete` returns the candidates.

_leasehold() {
  local line=${COMP_LINE:0:COMP_POINT} words=() word breaks i kind= candidate does
  COMPREPLY=()
  # bash also splits words at = : and @. Join the parts that no blank separates.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $i -eq 0 || $line == [[:blank:]]* || -z $line ]]; then
      line=${line#"${line%%[![:blank:]]*}"}
      words+=('')
    fi
    if [[ $i -eq $COMP_CWORD ]]; then word=$line; fi
    words[${#words[@]} - 1]+=$word
    line=${line#"$word"}
  done
  # bash keeps the last word up to the last of these characters, and replaces the rest and an @ before it.
  word=${words[${#words[@]} - 1]}
  breaks=${COMP_WORDBREAKS//[!=:@]/}
  if [[ -n $breaks ]]; then word=${word%"${word##*[$breaks]}"}; else word=; fi
  word=${word%@}
  while IFS=$'\t' read -r candidate does; do
    if [[ -z $kind ]]; then kind=$candidate; else COMPREPLY+=("${candidate#"$word"}"); fi
  done < <(command leasehold __complete -- "${words[@]:1}" 2>/dev/null)
  case $kind in
    file) compopt -o default 2>/dev/null ;;
    directory) compopt -o dirnames 2>/dev/null ;;
    command) while IFS= read -r candidate; do COMPREPLY+=("$candidate"); done < <(compgen -c -- "${words[${#words[@]} - 1]}") ;;
  esac
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _leasehold leasehold
