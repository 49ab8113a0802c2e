import { expect, test } from 'vitest'
import type { DrainMode } from '../../api/backuppodset.ts'
import type { Migration, MigrationPhase, MigrationStatus } from '../../api/migration.ts'
import { memoryAnnotation } from '../../api/pod-contract.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { pod, set } from '../testing/objects.ts'
import { makeSession } from '../testing/session.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { evacuate } from './evacuate.ts'
import { move } from './move.ts'

/** An API server with Migrations, whose phases a test sets. */
interface Start {
  readonly mayReadNodes?: boolean
  readonly drain?: DrainMode
}

function scene({ mayReadNodes = true, drain = 'Move' }: Start = {}) {
  const clock = createFakeClock()
  const terminal = recordingTerminal()
  const stop = new AbortController()
  const stored = new Map<string, Migration>()
  const deleted: string[] = []
  const cordoned: string[] = []
  const gone = new Set<string>()
  let version = 0
  const api = fakeApi({
    async create(_, body) {
      version += 1
      const { metadata, spec } = body as Migration & { metadata: { generateName: string } }
      const name = `${metadata.generateName}${version}`
      const made: Migration = {
        spec,
        metadata: {
          name,
          namespace: metadata.namespace ?? '',
          uid: `uid-${name}`,
          resourceVersion: `${version}`,
        },
      }
      stored.set(name, made)
      return made
    },
    async get({ plural }, { name }) {
      if (plural === 'backuppodsets') return set()
      if (plural === 'nodes') {
        if (!mayReadNodes) throw new KubeError('Forbidden', 'no right')
        const labels = { 'kubernetes.io/hostname': `host-${name}` }
        return { metadata: { name, uid: name, resourceVersion: '1', labels } }
      }
      const found = stored.get(name)
      if (found === undefined) throw new KubeError('NotFound', `no ${name}`)
      return found
    },
    async list({ plural }) {
      const metadata = { resourceVersion: '1' }
      if (plural === 'migrations') return { items: [...stored.values()], metadata }
      if (plural === 'backuppodsets') {
        const one = set()
        return { items: [{ ...one, spec: { ...one.spec, checkpoint: { drain } } }], metadata }
      }
      const marked = pod('web-p', 'primary')
      const kept = {
        ...marked,
        metadata: { ...marked.metadata, annotations: { [memoryAnnotation]: 'kept' } },
      }
      return {
        items: [kept, pod('plain-p', 'primary')].filter(each => !gone.has(each.metadata.name)),
        metadata,
      }
    },
    async patch(_, { name }) {
      cordoned.push(name)
      return { metadata: { name, uid: name, resourceVersion: '2' } }
    },
    async delete(_, { name }) {
      deleted.push(name)
      stored.delete(name)
    },
  })
  const session = makeSession({ api, clock, terminal, signal: stop.signal })
  const statusOf = (
    phase: MigrationPhase,
    over: Partial<MigrationStatus>,
    reason: string,
  ): MigrationStatus => ({
    ...{ phase, source: { uid: 'u', node: 'n1', set: 'web', slot: 0 } },
    target: { name: 'web-t', uid: 't', node: 'n3' },
    conditions: [
      {
        ...{ type: 'Succeeded', status: 'Unknown', reason, message: `about ${phase}` },
        ...{ lastTransitionTime: '2030-01-01T00:00:00Z', observedGeneration: 1 },
      },
    ],
    ...over,
  })
  /** A Migration of the operator. */
  const put = (name: string, phase: MigrationPhase, uid: string, reason = 'Moved') =>
    stored.set(name, {
      metadata: { name, namespace: 'shop', uid: `uid-${name}`, resourceVersion: '9' },
      spec: { source: { name: 'web-p', uid } },
      status: statusOf(phase, { source: { uid, node: 'n1', set: 'web', slot: 0 } }, reason),
    })
  const goes = (phase: MigrationPhase, over: Partial<MigrationStatus> = {}, reason = 'Moved') => {
    for (const [name, migration] of stored)
      stored.set(name, { ...migration, status: statusOf(phase, over, reason) })
  }
  const created = () => [...stored.values()].map(({ spec }) => spec)
  const leave = (name: string) => void gone.add(name)
  return { clock, terminal, session, stop, deleted, cordoned, goes, created, put, leave }
}

test('a move creates a Migration to the node by its host name, and tells for how long the pod was stopped', async () => {
  const { clock, terminal, session, goes, created } = scene()
  const done = move(session, 'web', '0', { to: 'n3', maxDowntime: '500ms', timeout: 60 })
  await clock.untilSleepers(1)
  expect(created()).toEqual([
    {
      source: { name: 'web-p' },
      addedNodeSelector: { 'kubernetes.io/hostname': 'host-n3' },
      maxDowntime: '500ms',
    },
  ])
  goes('Succeeded', { downtimeMilliseconds: 240 })
  await clock.advance(200)
  await done
  expect(terminal.written).toEqual([
    'slot 0: web-p on n1 → web-t on n3, with all its memory; it was stopped for 0.24 s',
  ])
})

test('a move names a slot by its primary as well, and another name moves nothing', async () => {
  const { clock, session, goes, created } = scene()
  const done = move(session, 'web', 'web-p', { technique: 'LiveIfPossible', timeout: 60 })
  await clock.untilSleepers(1)
  expect(created()).toEqual([{ source: { name: 'web-p' }, technique: 'LiveIfPossible' }])
  goes('Succeeded')
  await clock.advance(200)
  await done
  const other = scene()
  await expect(move(other.session, 'web', 'web-h', { timeout: 60 })).rejects.toThrow('has no primary web-h')
  expect(other.created()).toEqual([])
})

test('a user who may not read nodes names the node all the same', async () => {
  const { clock, session, goes, created } = scene({ mayReadNodes: false })
  const done = move(session, 'web', '0', { to: 'n3', timeout: 60 })
  await clock.untilSleepers(1)
  expect(created()).toMatchObject([{ addedNodeSelector: { 'kubernetes.io/hostname': 'n3' } }])
  goes('Succeeded')
  await clock.advance(200)
  await done
})

test('a move that fails tells why, and one that does not end in time or is interrupted is called off', async () => {
  const failing = scene()
  const failed = move(failing.session, 'web', '0', { timeout: 60 }).catch((error: unknown) => error)
  await failing.clock.untilSleepers(1)
  failing.goes('Failed', {}, 'TargetFailed')
  await failing.clock.advance(200)
  expect(await failed).toMatchObject({
    message: 'the move has failed: TargetFailed: about Failed',
    exitCode: 1,
  })
  expect(failing.deleted, 'it stays, and tells why').toEqual([])

  const slow = scene()
  const late = move(slow.session, 'web', '0', { timeout: 1 }).catch((error: unknown) => error)
  await slow.clock.untilSleepers(1)
  slow.goes('Preparing', {}, 'MemoryComing')
  for (let i = 0; i < 5; i += 1) await slow.clock.advance(200)
  expect(await late).toMatchObject({ exitCode: 4, message: expect.stringContaining('about Preparing') })
  expect(slow.deleted).toHaveLength(1)

  const left = scene()
  const interrupted = move(left.session, 'web', '0', { timeout: 60 }).catch((error: unknown) => error)
  await left.clock.untilSleepers(1)
  left.stop.abort(new Error('Ctrl-C'))
  expect(await interrupted).toMatchObject({ message: 'Ctrl-C' })
  expect(left.deleted).toHaveLength(1)
})

test('an evacuation cordons the node, and waits for the Migrations of the operator, and for no other pods', async () => {
  const { clock, terminal, session, cordoned, put, leave } = scene()
  const done = evacuate(session, 'n1', { timeout: 60 })
  await clock.untilSleepers(1)
  expect(cordoned).toEqual(['n1'])
  put('web-p-drain-1', 'Switching', 'uid-web-p')
  leave('web-p')
  await clock.advance(1_000)
  put('web-p-drain-1', 'Succeeded', 'uid-web-p')
  await clock.advance(1_000)
  await done
  expect(terminal.written.join('\n').split('\n')).toEqual([
    expect.stringContaining('web-p on n1 → web-t on n3, with all its memory'),
    '1 of 1 primaries with memory have left node n1; it is cordoned',
  ])
})

test('an evacuation in which a primary stays tells which and why, and the operator continues', async () => {
  const { clock, terminal, session, put, deleted } = scene()
  const done = evacuate(session, 'n1', { timeout: 2 }).catch((error: unknown) => error)
  await clock.untilSleepers(1)
  put('web-p-drain-1', 'Failed', 'uid-web-p', 'Unschedulable')
  await clock.advance(1_000)
  await clock.advance(1_000)
  expect(await done).toMatchObject({
    ...{ exitCode: 4, message: '1 primaries have not left node n1 within --timeout' },
  })
  expect(terminal.written[0]).toContain('Failed: Unschedulable: about Failed: stays')
  expect(deleted).toEqual([])
})

test('an evacuation does not wait for a set that lets its primaries be evicted', async () => {
  const { session, terminal } = scene({ drain: 'Evict' })
  await evacuate(session, 'n1', { timeout: 60 })
  expect(terminal.written).toEqual(['0 of 0 primaries with memory have left node n1; it is cordoned'])
})
