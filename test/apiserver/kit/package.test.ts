import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chaptersOf } from '../../../kit/api.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { configMaps, events, leases, namespaces } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { installKit } from './install.ts'

const run = promisify(execFile)
let below: string
let directory: string
let api: Api
let namespace: string

beforeAll(async () => {
  below = await mkdtemp(join(tmpdir(), 'understudy-kit-'))
  directory = await installKit(below, ['@types/node', 'pino'])
  const operator = await operatorOfReadme()
  expect(operator.split('\n').length).toBeLessThanOrEqual(60)
  await writeFile(join(directory, 'operator.ts'), operator)
  await writeFile(join(directory, 'fake.ts'), onFakeServer)
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  namespace = (await api.create(namespaces, { metadata: { generateName: 'kit-' } })).metadata.name
}, 300_000)
afterAll(async () => {
  await api.delete(namespaces, { name: namespace })
  await api.close()
  await rm(below, { recursive: true, force: true })
})

/** A program with the API server in memory. */
const onFakeServer = `
  import { configMaps, runManager, silentLog as log } from '@understudy/kube'
  import { createApiServer, createMemoryApi } from '@understudy/kube/testing'

  const server = createApiServer(() => Date.now())
  const connect = () => createMemoryApi(server)
  const stop = new AbortController()
  server.create(configMaps, { metadata: { name: 'a' } }, 'ns')
  await runManager(
    { name: 'n', namespace: 'ns', log, connect, healthPort: 0, metricsPort: 0 },
    manager => {
      const maps = manager.cache(configMaps)
      manager.leading(async () => {
        console.log(maps.list().map(({ metadata }) => metadata.name))
        stop.abort()
      })
    },
    stop.signal,
  )
`

/** Returns the compiler's complaints about a strict program of the user and about the kit's own declarations. */
async function complaints(): Promise<readonly string[]> {
  const compilerOptions = {
    noEmit: true,
    strict: true,
    target: 'es2024',
    module: 'nodenext',
    types: ['node'],
  }
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  const { stdout } = await run('tsc', { cwd: directory }).catch((failed: { stdout: string }) => failed)
  // The declarations of client-node lack those of `ws`; no part of the kit uses these.
  return stdout
    .split('\n')
    .filter(line => /error TS/.test(line) && !/^node_modules\/(?!@understudy)/.test(line))
}

/** The operator in the README that was packed. */
async function operatorOfReadme(): Promise<string> {
  const readme = await readFile(join(directory, 'node_modules/@understudy/kube/README.md'), 'utf8')
  const program = /```ts\n(.*?)```/s.exec(readme)?.[1]
  if (program === undefined) throw new Error('the README has no program')
  return program
}

/** Starts the operator as a process of its own. */
function start() {
  const env = { ...process.env, KUBECONFIG: adminKubeconfig(), NAMESPACE: namespace }
  const child = spawn(process.execPath, ['operator.ts'], {
    cwd: directory,
    env: { ...env, HEALTH_PORT: '0', METRICS_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const logged: Readonly<Record<string, unknown>>[] = []
  createInterface(child.stdout).on('line', line => logged.push(JSON.parse(line)))
  const exited = once(child, 'exit')
  const portOf = (field: string) =>
    eventually(() => {
      const port = logged.find(({ msg }) => msg === 'listening')?.[field]
      expect(port).toBeTypeOf('number')
      return port as number
    })
  return {
    get: async (field: 'healthPort' | 'metricsPort', path: string) =>
      fetch(`http://127.0.0.1:${await portOf(field)}${path}`),
    leads: () => logged.some(({ msg }) => msg === 'leading'),
    terminate: () => child.kill('SIGTERM'),
    exitCode: async () => (await exited)[0] as number | null,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

const textOf = async (name: string) => (await api.get(configMaps, { namespace, name })).data?.['text']
const greet = (name: string, who?: string) =>
  api.create(configMaps, {
    metadata: { namespace, name, labels: { toy: 'greeting' } },
    ...(who && { data: { who } }),
  })

test('programs compile against the installed package, strictly', async () => {
  expect(await complaints()).toEqual([])
})

test('the operator of the README works with the installed package alone', async () => {
  await greet('early', 'early bird')
  await using one = start()
  await eventually(async () => expect(await textOf('early-out')).toBe('Hello, early bird'))
  expect((await one.get('healthPort', '/readyz')).status).toBe(200)
  expect((await one.get('healthPort', '/healthz')).status).toBe(200)

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
  const scrape = await (await one.get('metricsPort', '/metrics')).text()
  expect(scrape).toContain('controller_runtime_terminal_reconcile_errors_total{controller="greeting"} 1')
  expect(scrape).toContain('controller_runtime_reconcile_panics_total{controller="greeting"} 0')

  // The other replica takes over and handles the changes made in the meantime.
  await using two = start()
  await eventually(async () => expect((await two.get('healthPort', '/readyz')).status).toBe(200))
  expect(two.leads()).toBe(false)
  one.terminate()
  expect(await one.exitCode()).toBe(0)
  await greet('late', 'late riser')
  await eventually(async () => expect(await textOf('late-out')).toBe('Hello, late riser'))
  expect(two.leads()).toBe(true)
  two.terminate()
  expect(await two.exitCode()).toBe(0)
  expect((await api.get(leases, { namespace, name: 'greeter' })).spec?.holderIdentity ?? '').toBe('')

  const notes = (await api.list(events, { namespace })).items.map(event => event.note)
  expect(new Set(notes)).toEqual(
    new Set(['Hello, early bird', 'Hello, world', 'Hello, moon', 'Hello, late riser']),
  )
})

test('the API page of the package explains each module or function', async () => {
  const installed = join(directory, 'node_modules/@understudy/kube')
  const chapters = (
    await Promise.all(
      ['index', 'testing/index'].map(name => chaptersOf(join(installed, `dist/${name}.d.ts`))),
    )
  ).flat()
  const unexplained = chapters.flatMap(({ module, about, entries }) =>
    entries
      .filter(each => each.isFunction && each.about + about === '')
      .map(({ name }) => `${module}: ${name}`),
  )
  expect(unexplained).toEqual([])
  const page = await readFile(join(installed, 'API.md'), 'utf8')
  const names = chapters.flatMap(({ entries }) => entries.map(({ name }) => `### ${name}\n`))
  expect(names.length).toBeGreaterThan(150)
  expect(names.filter(heading => !page.includes(heading))).toEqual([])
})

test('the API server in memory of the package runs without a cluster', async () => {
  const { stdout } = await run(process.execPath, ['fake.ts'], { cwd: directory })
  expect(stdout).toBe("[ 'a' ]\n")
})
