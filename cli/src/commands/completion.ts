// `berth completion`: shell completion scripts, generated from the command tree.
import type { Command } from 'commander'
import type { Action } from '../kit/action.ts'
import { usage } from '../kit/failures.ts'

type Entry = { path: string; words: string[] }

/** Each command with its subcommands and options. */
function entriesOf(command: Command, path: string[] = []): Entry[] {
  const options = [...command.options, ...(path.length > 0 ? rootOf(command).options : [])].flatMap(
    ({ long }) => long ?? [],
  )
  const words = [...command.commands.map((one) => one.name()), ...options, '--help']
  return [
    { path: path.join(' '), words: [...new Set(words)] },
    ...command.commands.flatMap((one) => entriesOf(one, [...path, one.name()])),
  ]
}

function rootOf(command: Command): Command {
  return command.parent ? rootOf(command.parent) : command
}

const writers: Record<string, (entries: Entry[]) => string> = {
  bash: (entries) => `_berth() {
  local word path=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do [[ $word == -* ]] || path="\${path:+$path }$word"; done
  local words=''
  while :; do
    case "$path" in
${entries.map(({ path, words }) => `      '${path}') words='${words.join(' ')}'; break ;;`).join('\n')}
    esac
    [[ $path == *' '* ]] && path="\${path% *}" || path=''
  done
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _berth berth
`,
  zsh: (entries) => `#compdef berth
_berth() {
  local -a given=(\${\${words[2,CURRENT-1]}:#-*}) found
  local path="\${(j: :)given}"
  while :; do
    case "$path" in
${entries.map(({ path, words }) => `      '${path}') found=(${words.join(' ')}); break ;;`).join('\n')}
    esac
    [[ "$path" == *' '* ]] && path="\${path% *}" || path=''
  done
  compadd -- $found
  _files
}
compdef _berth berth
`,
  fish: (entries) =>
    entries
      .map(({ path, words }) => {
        const parts = path.split(' ').filter(Boolean)
        const test =
          parts.length === 0
            ? '__fish_use_subcommand'
            : parts.map((part) => `__fish_seen_subcommand_from ${part}`).join('; and ')
        return `complete -c berth -n '${test}' -a '${words.join(' ')}'\n`
      })
      .join(''),
}

export const completion =
  (program: Command): Action =>
  async (_context, [shell]) => {
    const write = writers[shell!]
    if (!write) throw usage(`${shell} is unsupported. The supported shells are ${Object.keys(writers).join(', ')}.`)
    process.stdout.write(write(entriesOf(program)))
  }
