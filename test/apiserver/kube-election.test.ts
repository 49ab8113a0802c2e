import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Api, createApi } from '../../src/kube/api.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { createElector, LeadershipLost } from '../../src/kube/election.ts'
import { silentLog } from '../../src/kube/log.ts'
import { systemRandom } from '../../src/kube/random.ts'
import { leases, namespaces } from '../../src/kube/resources.ts'
import { eventually } from '../support/eventually.ts'
import { adminKubeconfig } from './lib/plane.ts'

let api: Api
let namespace: string
let count = 0
const cleanups: (() => unknown)[] = []

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  namespace = (await api.create(namespaces, { metadata: { generateName: 'kit-election-' } })).metadata.name
})
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})
afterAll(async () => {
  await api.delete(namespaces, { name: namespace })
  await api.close()
})

const nextLease = () => `lease-${++count}`
const lease = (name: string) => api.get(leases, { namespace, name })
/** A pause of a busy machine ends no term. */
const long = { leaseDurationMs: 10_000, renewDeadlineMs: 8_000 }
/** For a leader whose term is to expire: no longer than a test has to wait. */
const short = { leaseDurationMs: 4_000, renewDeadlineMs: 3_500 }
/** A candidate in this process. */
const join = (name: string, identity: string) => {
  const end = new AbortController()
  const terms: { stop: AbortSignal; lost: AbortSignal }[] = []
  const elector = createElector({
    api,
    namespace,
    name,
    identity,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    ...long,
  })
  const run = elector.run({
    onStarted: (stop, lost) =>
      new Promise(resolve => {
        terms.push({ stop, lost })
        stop.addEventListener('abort', () => resolve())
      }),
    signal: end.signal,
  })
  const leave = async () => {
    end.abort()
    await run
  }
  cleanups.push(leave)
  return { elector, terms, leave }
}

/** A candidate in a process of its own. */
const spawnCandidate = (name: string, identity: string, times: typeof long) => {
  const script = new URL('elector-process.ts', import.meta.url).pathname
  const child: ChildProcess = spawn(
    process.execPath,
    [script, adminKubeconfig(), namespace, name, identity, JSON.stringify(times)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const lines: string[] = []
  if (child.stdout) createInterface(child.stdout).on('line', line => lines.push(line))
  const exited = once(child, 'exit')
  cleanups.push(async () => {
    child.kill('SIGKILL')
    await exited
  })
  return { child, lines, exited }
}

test('one of two leads, and the API server takes the record', async () => {
  const name = nextLease()
  const a = join(name, 'a')
  await eventually(() => expect(a.elector.isLeader()).toBe(true))
  const b = join(name, 'b')
  const first = await lease(name)
  expect(first.spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 10, leaseTransitions: 0 })
  expect(first.spec?.renewTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  // Alive: the Lease is renewed by the same holder.
  await eventually(async () => {
    const later = await lease(name)
    expect(later.spec?.renewTime).not.toBe(first.spec?.renewTime)
    expect(later.spec).toMatchObject({ holderIdentity: 'a', acquireTime: first.spec?.acquireTime })
  })
  await eventually(() => expect(b.elector.leader()).toBe('a'))
  expect(b.terms).toHaveLength(0)
})

test('a candidate that leaves gives the lease back, and the next one takes it', async () => {
  const name = nextLease()
  const a = join(name, 'a')
  await eventually(() => expect(a.elector.isLeader()).toBe(true))
  const b = join(name, 'b')
  await a.leave()
  expect(a.elector.isLeader()).toBe(false)
  await eventually(() => expect(b.elector.isLeader()).toBe(true))
  expect((await lease(name)).spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
  await b.leave()
  expect((await lease(name)).spec?.holderIdentity ?? '').toBe('')
})

test('SIGKILL of the leader: the standby takes over', async () => {
  const name = nextLease()
  const { child, lines, exited } = spawnCandidate(name, 'child', short)
  await eventually(() => expect(lines).toContain('leading'))
  const b = join(name, 'b')
  await eventually(() => expect(b.elector.leader()).toBe('child'))
  child.kill('SIGKILL')
  await exited
  await eventually(() => expect(b.elector.isLeader()).toBe(true))
  expect((await lease(name)).spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
})

test('SIGTERM of the leader: it releases before it exits', async () => {
  const name = nextLease()
  const { child, lines, exited } = spawnCandidate(name, 'child', long)
  await eventually(() => expect(lines).toContain('leading'))
  child.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
  expect(lines).toEqual(['started', 'leading', 'released'])
  expect((await lease(name)).spec?.holderIdentity ?? '').toBe('')
})

test('a leader that was frozen wakes up knowing that it leads no more', async () => {
  const name = nextLease()
  const { child, lines } = spawnCandidate(name, 'child', short)
  await eventually(() => expect(lines).toContain('leading'))
  const b = join(name, 'b')
  await eventually(() => expect(b.elector.leader()).toBe('child'))
  child.kill('SIGSTOP')
  await eventually(() => expect(b.elector.isLeader()).toBe(true))
  child.kill('SIGCONT')
  await eventually(() => expect(lines).toContain('lost, isLeader false'))
  expect(b.elector.isLeader()).toBe(true)
  expect((await lease(name)).spec?.holderIdentity).toBe('b')
})

test('a lease that somebody deletes is made again', async () => {
  const name = nextLease()
  const a = join(name, 'a')
  await eventually(() => expect(a.elector.isLeader()).toBe(true))
  const { uid } = (await lease(name)).metadata
  await api.delete(leases, { namespace, name })
  await eventually(async () => {
    const again = await lease(name)
    expect(again.metadata.uid).not.toBe(uid)
    expect(again.spec?.holderIdentity).toBe('a')
  })
  expect(a.terms).toHaveLength(1)
  expect(a.terms[0]?.stop.aborted).toBe(false)
})

test('a lease that somebody takes by hand ends the term', async () => {
  const name = nextLease()
  const a = join(name, 'a')
  await eventually(() => expect(a.elector.isLeader()).toBe(true))
  const spec = { holderIdentity: 'admin', leaseDurationSeconds: 3600 }
  await api.patch(leases, { namespace, name }, { type: 'merge', body: { spec } })
  await eventually(() => expect(a.elector.isLeader()).toBe(false))
  expect(a.terms[0]?.lost.reason).toBeInstanceOf(LeadershipLost)
  expect((await lease(name)).spec?.holderIdentity).toBe('admin')
})

test('ten candidates, one leader, whoever leaves', async () => {
  const name = nextLease()
  const all = Array.from({ length: 10 }, (_, n) => join(name, `c${n}`))
  const leaders = () => all.filter(({ elector }) => elector.isLeader())
  for (let left = all.length; left > 0; left--) {
    const leader = await eventually(() => {
      expect(leaders()).toHaveLength(1)
      return leaders()[0]
    })
    await leader?.leave()
  }
  expect((await lease(name)).spec?.leaseTransitions).toBe(9)
})
