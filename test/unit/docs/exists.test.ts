/** R30: every field, argument, reason, metric or mark that the user pages name exists. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { exported } from '../../../deploy/exported-metrics.ts'

const root = new URL('../../..', import.meta.url).pathname
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** Other documents are not checked: decisions describe history, and the changelog names removed things. */
const pages = [...globSync('docs/*.md', { cwd: root }), 'README.md', 'SECURITY.md'].sort()

/** Running and shipped files. Documents are not included, nor tests, which also name things that must not exist. */
const code = globSync(
  [
    '{src,crds,deploy,samples,playground,demo,bench,build,images,plugin,release,site,first-day,portability,zoo}/**/*.{ts,yaml,json}',
    '{native,init-waker}/**/*.{c,h}',
    'test/{endurance,sim}/**/*.ts',
    'package.json',
  ],
  { cwd: root },
)
  .filter(path => !path.endsWith('.test.ts') && !path.includes('node_modules'))
  .map(read)
  .join('\n')
const words = new Set(code.match(/[A-Za-z0-9_]+/g))
const flags = new Set(code.match(/--[a-z][a-z-]+/g))

/** Flags of programs that are not ours. */
const foreignFlags = new Set([
  ...[
    '--archive',
    '--force',
    '--grace-period',
    '--manifest',
    '--sign',
    '--for',
    '--previous',
    '--recursive',
    '--context',
    '--build-arg',
    '--help',
    '--create-namespace',
    '--no-hooks',
    '--set',
  ],
  ...[
    '--metric-labels-allowlist',
    '--profile',
    '--field-selector',
    '--ignore-daemonsets',
    '--delete-emptydir-data',
  ],
  '--disable-eviction',
  ...['--agents', '--container-runtime', '--now'],
  ...['--ignore-missing', '--insecure-ignore-tlog', '--signature'],
])
/** Words of Kubernetes, and of kstatus. */
const foreignWords = new Set(['ReadWriteOnce', 'ReadWriteOncePod', 'InProgress'])

interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}
interface Crd {
  readonly spec: {
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[]
  }
}
const kindIn = (path: string) => (parse(read(path)) as Crd).spec.versions[0]?.schema.openAPIV3Schema
const kind = kindIn('crds/backup.example.com_backuppodsets.yaml')
const report = kindIn('crds/backup.example.com_nodereports.yaml')
const migratingPod = kindIn('crds/backup.example.com_migratingpods.yaml')

const codeIn = (path: string): string[] =>
  [...read(path).matchAll(/```[^\n]*\n(.*?)```|`([^`\n]+)`/gs)].map(
    ([, block, inline]) => block ?? inline ?? '',
  )

/** `checkpoint.interval` and `status.slots[].savedAt`; a field of the spec may leave `spec.` out. */
function isField(path: string): boolean {
  const steps = path.replaceAll('[]', '').split('.')
  const within = (from: Schema | undefined) =>
    steps.reduce<Schema | undefined>((at, step) => {
      const own = at?.type === 'array' ? at.items : at
      return own?.properties?.[step]
    }, from) !== undefined
  return [kind, kind?.properties?.['spec'], report, migratingPod].some(within)
}
const parents = new Set([
  'status',
  ...Object.entries(kind?.properties?.['spec']?.properties ?? {})
    .filter(([name, { properties }]) => properties !== undefined && name !== 'template')
    .map(([name]) => name),
])

describe.each(pages)('R30: %s names nothing that is not there', path => {
  const pieces = codeIn(path)
  const all = (pattern: RegExp) => [
    ...new Set(pieces.flatMap(piece => [...piece.matchAll(pattern)].map(([name]) => name))),
  ]

  test('arguments', () => {
    const named = all(/(?<![\w-])--[a-z][a-z-]+/g)
    expect(named.filter(flag => !flags.has(flag) && !foreignFlags.has(flag))).toEqual([])
  })

  test('fields', () => {
    const named = all(/(?<![\w./-])(?:spec\.)?[a-z]\w*(?:\[\])?(?:\.[a-z]\w*(?:\[\])?)+(?![\w/(-])/g).filter(
      name => parents.has(name.replace(/^spec\./, '').split(/[.[]/)[0] ?? ''),
    )
    expect(named.filter(name => !isField(name) && !/\.(?:ts|yaml)$/.test(name))).toEqual([])
  })

  test('reasons, kinds and events', () => {
    const named = all(/^[A-Z][a-z]+(?:[A-Z][a-z]*)+$/g)
    expect(named.filter(name => !words.has(name) && !foreignWords.has(name))).toEqual([])
  })

  test('metrics', async () => {
    const known = exported()
    const named = all(/\b(?:understudy|bps|backuppodset)_[a-z_]+/g)
    expect(named.filter(name => !known.has(name.replace(/_(?:bucket|sum|count)$/, '')))).toEqual([])
  })

  test('labels and annotations', () => {
    const named = all(/backup\.example\.com\/[a-z][a-z-]*(?<!-)(?!\w)/g)
    const known = (mark: string) =>
      [mark, `}/${mark.split('/')[1]}\``, `{prefix}${mark.split('/')[1]}\``].some(text => code.includes(text))
    expect(named.filter(mark => !/\/v1alpha1$/.test(mark) && !known(mark))).toEqual([])
  })
})

test('there is something to look at', () => {
  const found = pages.flatMap(codeIn)
  expect(found.filter(piece => /--[a-z]/.test(piece)).length).toBeGreaterThan(30)
  expect(found.filter(piece => /^[A-Z][a-z]+(?:[A-Z][a-z]*)+$/.test(piece)).length).toBeGreaterThan(100)
  expect(parents.size).toBeGreaterThan(4)
})
