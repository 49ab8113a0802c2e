/**
 * `npm run generate` writes the table of rights in docs/install.md from the roles; `--check` fails if the table is out
 * of date.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

interface Object {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> }
  readonly rules?: readonly Rule[]
  readonly roleRef?: { readonly kind: string; readonly name: string }
  readonly subjects?: readonly { readonly name: string }[]
}

/** Files with roles and bindings, and the namespace that their kustomization sets on namespaced objects. */
const files = [
  ['operator/rbac/operator.yaml', 'understudy-system'],
  ['operator/rbac/operator-own-namespace.yaml', 'understudy-system'],
  ['operator/rbac/users.yaml', ''],
  ['pod-migration-jobs/rbac.yaml', 'understudy-system'],
  ['job-reservations/rbac.yaml', ''],
  ['migrating-jobs/rbac.yaml', ''],
  ['clone-pods/rbac.yaml', ''],
  ['job-preemptions/rbac.yaml', ''],
  ['agent/rbac.yaml', ''],
  ['agent/generations-key.yaml', 'understudy-agents'],
] as const

const pagePath = new URL('../docs/install.md', import.meta.url)
const [begin, end] = ['<!-- rights: npm run generate -->', '<!-- end of rights -->']

/** Returns one line for each rule of each role. */
export function rightsTable(): string {
  const rows = files.flatMap(([file, namespace]) => {
    const objects = parseAllDocuments(readFileSync(new URL(file, import.meta.url), 'utf8')).map(
      document => document.toJS() as Object,
    )
    return objects.flatMap(({ kind, metadata, rules = [] }) => {
      const bindings = objects.filter(
        ({ roleRef }) => roleRef?.kind === kind && roleRef.name === metadata.name,
      )
      const who = bindings.flatMap(({ subjects = [] }) => subjects.map(({ name }) => `\`${name}\``))
      const reach =
        who.length === 0
          ? `${aggregation(metadata.labels)}where it is bound`
          : kind === 'ClusterRole'
            ? 'all namespaces'
            : `\`${namespace}\``
      return rules.map(
        rule =>
          `| ${who.join(', ') || `role \`${metadata.name}\``} | ${what(rule)} | ${rule.verbs.join(', ')} | ${reach} |`,
      )
    })
  })
  return ['| who | what | may | where |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

function aggregation(labels: Readonly<Record<string, string>> = {}): string {
  const into = Object.keys(labels).flatMap(name => /\/aggregate-to-(.+)$/.exec(name)?.[1] ?? [])
  return into.length === 0 ? '' : `added to your \`${into.join('`, `')}\`, `
}

const what = ({ apiGroups, resources, resourceNames = [] }: Rule): string => {
  const kinds = resources.map(name => `${name}${apiGroups[0] === '' ? '' : `.${apiGroups[0]}`}`).join(', ')
  return resourceNames.length === 0
    ? kinds
    : `${kinds} named ${resourceNames.map(name => `\`${name}\``).join(', ')}`
}

/** Returns the page with the table inserted. */
export function withRights(page: string): string {
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from < 0 || to < from) throw new Error(`docs/install.md has lost its lines "${begin}" and "${end}"`)
  return `${page.slice(0, from + begin.length)}\n${rightsTable()}\n${page.slice(to)}`
}

if (import.meta.main) {
  const page = readFileSync(pagePath, 'utf8')
  const wanted = withRights(page)
  if (!process.argv.includes('--check')) writeFileSync(pagePath, wanted)
  else if (page !== wanted) {
    console.error('docs/install.md does not say what the roles say: run `npm run generate`')
    process.exitCode = 1
  }
}
