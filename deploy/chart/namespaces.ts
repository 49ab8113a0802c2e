import { isList, isMap, type KubeObject } from './merge.ts'
import type { Tokens, Tree } from './tokens.ts'

/** The names that the manifests have for the two namespaces, and what they are in the chart. */
const names = [
  { name: 'understudy-system', value: '$.Release.Namespace' },
  { name: 'understudy-agents', value: '$.Values.agents.namespace' },
] as const

/** Fields whose whole value is a namespace. An object may have such a name, too: `understudy-agents` is also a policy. */
const ofNamespaces = new Set(['namespace', 'namespaces', 'matchNames', 'kubernetes.io/metadata.name'])

/** Puts the namespaces of an installation in the place of those that the manifests name, in fields and in expressions. */
export function withNamespaces(tree: Tree, { kind }: KubeObject, tokens: Tokens): Tree {
  const walk = (value: Tree, key: string): Tree => {
    if (typeof value === 'string') return inText(value, key)
    if (isList(value)) return value.map(item => walk(item, key))
    if (isMap(value))
      return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, walk(it, name)]))
    return value
  }
  const inText = (text: string, key: string): string => {
    const whole = names.find(({ name }) => name === text)
    const isNamespace = ofNamespaces.has(key) || (kind === 'Namespace' && key === 'name')
    // Quoted, because a namespace may be called 123.
    if (whole !== undefined) return isNamespace ? tokens.inline(`{{ ${whole.value} | quote }}`) : text
    return names.reduce(
      (before, { name, value }) =>
        before.replaceAll(new RegExp(`(?<![\\w-])${name}(?![\\w-])`, 'g'), () =>
          tokens.inline(`{{ ${value} }}`),
        ),
      text,
    )
  }
  return walk(tree, '')
}
