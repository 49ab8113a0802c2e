/** Which words could come next on a command line. Pure: it reads the commands and no cluster. */
import type { Command, Option } from 'commander'

/** A word that could come next, and what it means. */
export interface Candidate {
  readonly word: string
  readonly about?: string
}

/** Names that only the cluster or the kubeconfig knows. */
export type Source = 'set' | 'owner' | 'slot' | 'primary' | 'node' | 'namespace' | 'context'

export type Want =
  | { readonly kind: 'words'; readonly words: readonly Candidate[] }
  | { readonly kind: 'names'; readonly of: Source }
  | { readonly kind: 'file' }

export interface CommandLine {
  readonly want: Want
  /** Beginning of the word that is being typed. */
  readonly prefix: string
  /** Options with values that stand before it, by their names. */
  readonly options: ReadonlyMap<string, string>
  /** Arguments of the command that stand before it. */
  readonly args: readonly string[]
}

/** By the name of an argument or option. */
const sources: Readonly<Record<string, Source>> = {
  ...{ set: 'set', name: 'owner', slot: 'slot', pod: 'primary', node: 'node' },
  ...{ '--slot': 'slot', '--to': 'node', '--namespace': 'namespace', '--context': 'context' },
}
const nothing: Want = { kind: 'words', words: [] }

/** @param typed words behind the program, the last of which is being typed, and may be empty */
export function commandLine(root: Command, typed: readonly string[]): CommandLine {
  // bash splits `--namespace=shop` into three words.
  const words = typed.filter((word, index) => word !== '=' || index === typed.length - 1)
  const before = words.slice(0, -1)
  const last = words.at(-1) ?? ''
  const options = new Map<string, string>()
  const args: string[] = []
  let command = root
  let open: Option | undefined
  for (const word of before) {
    if (open !== undefined) {
      options.set(open.long ?? '', word)
      open = undefined
    } else if (word.startsWith('-')) {
      const [name = '', value] = word.split(/=(.*)/s)
      const option = optionOf([command, root], name)
      if (option === undefined || !takesValue(option)) continue
      if (value === undefined) open = option
      else options.set(option.long ?? '', value)
    } else if (command === root) command = root.commands.find(each => each.name() === word) ?? command
    else args.push(word)
  }
  const known = { options, args }
  if (open !== undefined) return { ...known, want: wordsOf(open), prefix: last === '=' ? '' : last }
  const [, name, value] = /^(--?[^=]+)=(.*)$/s.exec(last) ?? []
  if (name !== undefined) {
    const option = optionOf([command, root], name)
    return { ...known, want: option === undefined ? nothing : wordsOf(option), prefix: value ?? '' }
  }
  if (last.startsWith('-'))
    return { ...known, want: { kind: 'words', words: optionWords(command, root) }, prefix: last }
  return {
    ...known,
    want: command === root ? commandWords(root) : argumentOf(command, args.length),
    prefix: last,
  }
}

const optionOf = (commands: readonly Command[], name: string): Option | undefined =>
  commands.flatMap(({ options }) => options).find(({ short, long }) => short === name || long === name)

const takesValue = ({ required, optional }: Option): boolean => required || optional

function wordsOf(option: Option): Want {
  if (option.long === '--kubeconfig' || option.long === '--file') return { kind: 'file' }
  if (option.argChoices !== undefined) return choices(option.argChoices)
  const of = sources[option.long ?? '']
  return of === undefined ? nothing : { kind: 'names', of }
}

const choices = (words: readonly string[]): Want => ({ kind: 'words', words: words.map(word => ({ word })) })

const optionWords = (command: Command, root: Command): readonly Candidate[] =>
  [...new Set([...command.options, ...root.options])].flatMap(({ long, description, hidden }) =>
    long === undefined || long === null || hidden ? [] : [{ word: long, about: description }],
  )

const commandWords = (root: Command): Want => ({
  kind: 'words',
  words: root.commands.map(each => ({ word: each.name(), about: each.description() })),
})

function argumentOf(command: Command, index: number): Want {
  const argument = command.registeredArguments[index]
  if (argument === undefined) return nothing
  if (argument.argChoices !== undefined) return choices(argument.argChoices)
  const of = sources[argument.name()]
  return of === undefined ? nothing : { kind: 'names', of }
}
