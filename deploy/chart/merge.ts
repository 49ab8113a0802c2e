/** Finds what a component of the kustomizations changes, and puts that into the template behind a condition. */
import type { Tokens, Tree } from './tokens.ts'

/** An object as kustomize prints it. */
export interface KubeObject {
  readonly [field: string]: Tree
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly [field: string]: Tree; readonly name: string }
}

/** An object of the chart: its fields may have tokens, and all of its conditions have to be true. */
export interface Part {
  /** As kustomize printed it last: what the next component is compared with. */
  readonly plain: KubeObject
  readonly tree: Tree
  /** Expressions of the template language. */
  readonly conditions: readonly string[]
  /** File of the chart's templates, without its ending. */
  readonly file: string
}

export interface Component {
  /** Its directory, which names the file of its own objects. */
  readonly name: string
  /** Expression that is true where a user wants it. */
  readonly condition: string
}

export const idOf = ({ kind, metadata }: KubeObject): string =>
  [kind, metadata['namespace'], metadata.name].filter(it => it !== undefined).join(' ')

/**
 * Returns the parts with what `component` changes.
 *
 * @param next all objects with this component and those before it.
 * @throws if it changes something in a way that these templates cannot express.
 */
export function withComponent(
  parts: readonly Part[],
  next: readonly KubeObject[],
  component: Component,
  tokens: Tokens,
): readonly Part[] {
  const later = new Map(next.map(object => [idOf(object), object]))
  const { name, condition } = component
  const known = parts.map(part => {
    const plain = later.get(idOf(part.plain))
    if (plain === undefined) return { ...part, conditions: [...part.conditions, `not (${condition})`] }
    const merge = merging(condition, tokens, `${name}: ${idOf(plain)}`)
    return { ...part, plain, tree: merge(part.tree, part.plain, plain) }
  })
  const before = new Set(parts.map(({ plain }) => idOf(plain)))
  const added = next
    .filter(object => !before.has(idOf(object)))
    .map(plain => ({ plain, tree: plain, conditions: [condition], file: name }))
  return [...known, ...added]
}

type Merge = (tree: Tree, before: Tree, after: Tree) => Tree

const merging = (condition: string, tokens: Tokens, where: string): Merge => {
  const merge: Merge = (tree, before, after) => {
    if (isList(before) && isList(after) && isList(tree)) return mergeLists(tree, before, after)
    if (isMap(before) && isMap(after) && isMap(tree)) return mergeMaps(tree, before, after)
    if (before === after) return tree
    if (typeof before !== 'string' || typeof after !== 'string' || tree !== before) throw unsupported()
    return tokens.inline(`{{ if ${condition} }}${after}{{ else }}${before}{{ end }}`)
  }
  const mergeMaps = (tree: TreeMap, before: TreeMap, after: TreeMap): Tree => {
    const keys = Object.keys(before)
    if (keys.length !== Object.keys(after).length) throw unsupported()
    const merged = keys.map(key => {
      const [inTree, old, now] = [tree[key], before[key], after[key]]
      if (inTree === undefined || old === undefined || now === undefined) throw unsupported()
      return [key, merge(inTree, old, now)] as const
    })
    return Object.fromEntries(merged)
  }
  /** Components only add to the end of lists. */
  const mergeLists = (tree: readonly Tree[], before: readonly Tree[], after: readonly Tree[]): Tree => {
    if (after.length < before.length) throw unsupported()
    let index = 0
    const merged = tree.map(item => {
      if (tokens.isLines(item)) return item
      const [old, now] = [before[index], after[index]]
      index += 1
      if (old === undefined || now === undefined) throw unsupported()
      return merge(item, old, now)
    })
    const added = after.slice(before.length)
    return added.length === 0 ? merged : [...merged, ...guarded(added, condition, tokens)]
  }
  const unsupported = () => new Error(`the chart cannot express what a component changes: ${where}`)
  return merge
}

/** Returns items of a list that are there only if a condition is true. */
export const guarded = (items: readonly Tree[], condition: string, tokens: Tokens): readonly Tree[] => [
  tokens.lines(() => `{{- if ${condition} }}`),
  ...items,
  tokens.lines(() => '{{- end }}'),
]

export interface TreeMap {
  readonly [key: string]: Tree
}

export const isList = (tree: Tree | undefined): tree is readonly Tree[] => Array.isArray(tree)

export const isMap = (tree: Tree | undefined): tree is TreeMap =>
  typeof tree === 'object' && tree !== null && !Array.isArray(tree)
