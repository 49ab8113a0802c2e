/** Measures the functions of a TypeScript file. */
import { type ArrowFunctionExpression, type Function as FunctionNode, type Node, Visitor } from 'oxc-parser'
import { parseTypeScript } from '../parse.ts'

export interface Measured {
  readonly name: string
  /** Where the function begins, from 1. */
  readonly line: number
  /** Its lines without those of the longer functions in it: a factory counts for what it does itself. */
  readonly own: number
}

/** A function in another one counts for itself if it has more lines than this. */
const shortNested = 3

type Code = FunctionNode | ArrowFunctionExpression

/**
 * A function is left out if its whole body is data: one object or array literal, or one call whose arguments are such
 * literals, as in a schema. It has no steps that could get a name. Functions in the literals count for themselves.
 * @throws Error if the file cannot be parsed.
 */
export function functionsOf(path: string, source: string): readonly Measured[] {
  const lineOf = (offset: number) => source.slice(0, offset).split('\n').length
  const names = new Map<number, string>()
  /** The functions around the current node, the innermost last, with the lines that remain their own. */
  const open: { readonly line: number; readonly own: Set<number> }[] = []
  const measured: Measured[] = []

  const nameIt = (name: Node, value: Node | null) => {
    if (name.type === 'Identifier' && value !== null) names.set(value.start, name.name)
  }
  const enter = (node: Code) => {
    const [line, last] = [lineOf(node.start), lineOf(node.end)]
    const lines = Array.from({ length: last - line + 1 }, (_, index) => line + index)
    if (lines.length > shortNested) for (const outer of open) for (const each of lines) outer.own.delete(each)
    open.push({ line, own: new Set(lines) })
  }
  const leave = (node: Code) => {
    const done = open.pop()
    if (done === undefined || isData(node)) return
    const name = node.id?.name ?? names.get(node.start) ?? '(no name)'
    measured.push({ name, line: done.line, own: done.own.size })
  }
  new Visitor({
    VariableDeclarator: ({ id, init }) => nameIt(id, init),
    Property: ({ key, value }) => nameIt(key, value),
    MethodDefinition: ({ key, value }) => nameIt(key, value),
    FunctionDeclaration: enter,
    FunctionExpression: enter,
    ArrowFunctionExpression: enter,
    'FunctionDeclaration:exit': leave,
    'FunctionExpression:exit': leave,
    'ArrowFunctionExpression:exit': leave,
  }).visit(parseTypeScript(path, source).program)
  return measured.sort((a, b) => a.line - b.line)
}

function isData({ body }: Code): boolean {
  if (body?.type !== 'BlockStatement') return body !== null && isMade(body)
  const [only, second] = body.body
  return only?.type === 'ReturnStatement' && second === undefined && isMade(only.argument)
}

function isMade(made: Node | null): boolean {
  if (made?.type === 'ParenthesizedExpression') return isMade(made.expression)
  if (made?.type !== 'CallExpression') return made !== null && isCollection(made)
  return made.callee.type === 'Identifier' && made.arguments.every(isCollection)
}

const isCollection = ({ type }: Node): boolean => type === 'ObjectExpression' || type === 'ArrayExpression'
