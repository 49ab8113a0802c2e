import { glob, readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { configMaps, events, leases, namespaces } from '../../src/kube/resources.ts'
import { eventually } from '../support/eventually.ts'
import { adminKubeconfig } from './lib/plane.ts'
import { runToy } from './toy-operator.ts'

let api: Api
let namespace: string

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  namespace = (await api.create(namespaces, { metadata: { generateName: 'kit-toy-' } })).metadata.name
})
afterAll(async () => {
  await api.delete(namespaces, { name: namespace })
  await api.close()
})

const textOf = async (name: string) => (await api.get(configMaps, { namespace, name })).data?.['text']
const greet = (name: string, who?: string) =>
  api.create(configMaps, {
    metadata: { namespace, name, labels: { toy: 'greeting' } },
    ...(who && { data: { who } }),
  })

const start = async (identity: string) => {
  const end = new AbortController()
  const toy = await runToy(adminKubeconfig(), namespace, identity, end.signal)
  const stop = async () => {
    end.abort()
    await toy.ended
  }
  return { ...toy, stop }
}

test('an operator of another kind, from this kit alone', async () => {
  await greet('early', 'early bird')
  const one = await start('one')
  await eventually(async () => expect(await textOf('early-out')).toBe('Hello, early bird'))
  expect((await fetch(`http://127.0.0.1:${one.health.port}/readyz`)).status).toBe(200)

  // An object is created, repaired and changed, with an invalid one beside it.
  const { metadata } = await greet('a', 'world')
  await greet('bad')
  await eventually(async () => expect(await textOf('a-out')).toBe('Hello, world'))
  expect((await api.get(configMaps, { namespace, name: 'a-out' })).metadata.ownerReferences).toMatchObject([
    { uid: metadata.uid, controller: true },
  ])
  await api.delete(configMaps, { namespace, name: 'a-out' })
  await eventually(async () => expect(await textOf('a-out')).toBe('Hello, world'))
  const change = { type: 'merge' as const, body: { data: { who: 'moon' } } }
  await api.patch(configMaps, { namespace, name: 'a' }, change)
  await eventually(async () => expect(await textOf('a-out')).toBe('Hello, moon'))

  // The other replica takes over and handles the changes made in the meantime.
  const two = await start('two')
  expect(two.elector.isLeader()).toBe(false)
  await one.stop()
  await greet('late', 'late riser')
  await eventually(async () => expect(await textOf('late-out')).toBe('Hello, late riser'))
  expect(two.elector.isLeader()).toBe(true)
  await two.stop()
  expect((await api.get(leases, { namespace, name: 'toy' })).spec?.holderIdentity ?? '').toBe('')

  const notes = (await api.list(events, { namespace })).items.map(event => event.note)
  expect(new Set(notes)).toEqual(
    new Set(['Hello, early bird', 'Hello, world', 'Hello, moon', 'Hello, late riser']),
  )
  const scrape = await one.metrics.registry.metrics()
  expect(scrape).toContain('controller_runtime_terminal_reconcile_errors_total{controller="toy"} 1')
  expect(scrape).toContain('controller_runtime_reconcile_panics_total{controller="toy"} 0')
})

test('the kit imports nothing of the rest of this project', async () => {
  const root = new URL('../../', import.meta.url).pathname
  const { dependencies } = JSON.parse(await readFile(`${root}package.json`, 'utf8'))
  const packages = new Set(Object.keys(dependencies))
  const found: string[] = []
  let files = 0
  for await (const file of glob('src/kube/**/*.ts', { cwd: root })) {
    if (file.endsWith('.test.ts') || file.includes('/testing/')) continue
    files++
    const source = await readFile(`${root}${file}`, 'utf8')
    for (const [, from] of source.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)) {
      const name = (from ?? '')
        .split('/')
        .slice(0, from?.startsWith('@') ? 2 : 1)
        .join('/')
      if (!/^\.\/[\w-]+\.ts$/.test(from ?? '') && !from?.startsWith('node:') && !packages.has(name))
        found.push(`${file}: ${from}`)
    }
  }
  expect(files).toBeGreaterThan(20)
  expect(found).toEqual([])
})
