/** Words that stand for parts of a template, while its objects are still data: a template is not YAML, so no YAML writer can write it. */
import { stringify } from 'yaml'

/** A value of YAML in which strings may be tokens. */
export type Tree = string | number | boolean | null | readonly Tree[] | { readonly [key: string]: Tree }

export interface Tokens {
  /** Stands for text within a line. The text may depend on the line's indentation. */
  inline(text: string | ((indent: number) => string)): string
  /** Stands for whole lines: as an item of a list, or as a key whose value is null. */
  lines(text: (indent: number) => string): string
  /** Returns whether a tree is a token for whole lines, and so no item of its list. */
  isLines(tree: Tree): boolean
  /** Writes a tree as YAML of a template. Braces that are no token's stay what they are. */
  write(tree: Tree): string
}

const [any, whole] = [/Tpl(\d+)Lpt/g, /^( *)(?:- )?Tpl(\d+)Lpt(?:: null)?$/]

/** Text of a template that stands for two braces in its result. */
const openingBraces = '{{ "{{" }}'

export function createTokens(): Tokens {
  const texts: ((indent: number) => string)[] = []
  const lineTokens = new Set<string>()
  const add = (text: (indent: number) => string): string => `Tpl${texts.push(text) - 1}Lpt`
  const textOf = (number: string | undefined, indent: number): string => {
    const text = texts[Number(number)]
    if (text === undefined) throw new Error(`token ${number} is not one of these`)
    return text(indent)
  }
  return {
    inline: text => add(typeof text === 'string' ? () => text : text),
    lines(text) {
      const token = add(text)
      lineTokens.add(token)
      return token
    },
    isLines: tree => typeof tree === 'string' && lineTokens.has(tree),
    write(tree) {
      const yaml = stringify(tree, { lineWidth: 0, aliasDuplicateObjects: false })
      const lines = yaml.trimEnd().replaceAll('{{', openingBraces).split('\n')
      return lines
        .map(line => {
          const [, space = '', number] = whole.exec(line) ?? []
          if (number !== undefined && lineTokens.has(`Tpl${number}Lpt`)) return textOf(number, space.length)
          const indent = line.length - line.trimStart().length
          return line.replaceAll(any, (_, inner: string) => textOf(inner, indent))
        })
        .join('\n')
    },
  }
}
