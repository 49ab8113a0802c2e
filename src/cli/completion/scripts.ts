/** The scripts that make a shell complete the command line. Each asks the program for the words. */

export const shells = ['bash', 'zsh', 'fish', 'kubectl'] as const
export type Shell = (typeof shells)[number]

/** Returns the script of a shell, or the program by which kubectl completes `kubectl understudy`. */
export const completionScript = (shell: Shell): string => scripts[shell].trim()

const scripts: Readonly<Record<Shell, string>> = {
  bash: `
# kubectl understudy completion bash: source <(kubectl understudy completion bash)
_kubectl_understudy() {
  local current="\${COMP_WORDS[COMP_CWORD]}" word about
  [ "$current" = = ] && current=
  COMPREPLY=()
  while IFS=$'\\t' read -r word about; do
    case "$word" in
    :0) compopt -o default ;;
    :*) ;;
    "$current"*) COMPREPLY+=("$word") ;;
    esac
  done < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
}
complete -F _kubectl_understudy kubectl-understudy kubectl-bps
`,
  zsh: `
#compdef kubectl-understudy kubectl-bps
# kubectl understudy completion zsh: source <(kubectl understudy completion zsh)
_kubectl_understudy() {
  local line
  local -a found
  [[ $PREFIX == --*=* ]] && compset -P '*='
  for line in "\${(@f)$("\${words[1]}" __complete "\${(@Q)words[2,CURRENT]}" 2> /dev/null)}"; do
    case $line in
    :0) _files ;;
    :*) ;;
    *$'\\t'*) found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
    ?*) found+=("\${line//:/\\\\:}") ;;
    esac
  done
  (( \${#found} )) && _describe -t words 'kubectl understudy' found
}
(( \${+functions[compdef]} )) && compdef _kubectl_understudy kubectl-understudy kubectl-bps
`,
  fish: `
# kubectl understudy completion fish | source
function __kubectl_understudy_complete
  set -l typed (commandline -opc)
  set -a typed "$(commandline -ct)"
  set -l found ($typed[1] __complete $typed[2..-1] 2> /dev/null)
  if test "$found[-1]" = :0
    __fish_complete_path "$typed[-1]"
  else
    printf '%s\\n' $found | string match -rv '^:\\d+$'
  end
end
complete -c kubectl-understudy -f -a '(__kubectl_understudy_complete)'
complete -c kubectl-bps -f -a '(__kubectl_understudy_complete)'
`,
  kubectl: `
#!/bin/sh
# kubectl 1.26 and later completes \`kubectl understudy\` by this program. On the PATH it is named kubectl_complete-understudy.
exec kubectl-understudy __complete "$@"
`,
}
