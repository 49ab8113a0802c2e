import { expect, test } from 'vitest'
import type { Migration, MigrationStatus } from '../../api/migration.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { makeSession } from '../testing/session.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { showMigrations } from './migrations.ts'

const migration = (name: string, seconds: number, status?: MigrationStatus): Migration => ({
  metadata: {
    ...{ name, namespace: 'default', uid: name, resourceVersion: '1' },
    creationTimestamp: `2030-01-01T00:00:0${seconds}.000Z`,
  },
  spec: { source: { name: `pod-${name}` } },
  ...(status && { status }),
})
const word = (status: 'True' | 'False' | 'Unknown', reason: string, message: string) => ({
  ...{ type: 'Succeeded', status, reason, message },
  ...{ observedGeneration: 1, lastTransitionTime: '2030-01-01T00:00:00.000Z' },
})

function scene(items: readonly Migration[]) {
  const clock = createFakeClock({ now: Date.parse('2030-01-01T00:01:00.000Z') })
  const terminal = recordingTerminal()
  const stop = new AbortController()
  const asked: (string | undefined)[] = []
  const api = fakeApi({
    list: async (_, query) => {
      asked.push(query.namespace)
      return { items, metadata: { resourceVersion: '1' } }
    },
  })
  const session = makeSession({ api, clock, terminal, signal: stop.signal, namespace: 'default' })
  return { asked, clock, terminal, stop, session }
}

test('Migrations are shown in the order of their making, with what they wait for and what they have cost', async () => {
  const { session, terminal } = scene([
    migration('b', 2, {
      phase: 'Preparing',
      phaseTimes: [{ phase: 'Preparing', at: '2030-01-01T00:00:55.000Z' }],
      source: { uid: 'u', node: 'n1', set: 'web', slot: 0 },
      target: { name: 't', uid: 't', node: 'n2' },
      bytes: 3_100_000,
      conditions: [word('Unknown', 'MemoryComing', 'n2 has 1 MB of it')],
    }),
    migration('a', 1, {
      phase: 'Succeeded',
      downtimeMilliseconds: 190,
      conditions: [word('True', 'Moved', 'it serves')],
    }),
    migration('c', 3),
  ])
  await showMigrations(session, {})
  expect(
    terminal.written
      .join('\n')
      .split('\n')
      .map(line => line.trimEnd()),
  ).toEqual([
    'NAME   POD     FROM   TO   PHASE       FOR    SIZE     STOPPED   WHY',
    'a      pod-a   -      -    Succeeded   59s    -        0.19 s',
    'b      pod-b   n1     n2   Preparing   5.0s   3.1 MB   -         MemoryComing: n2 has 1 MB of it',
    'c      pod-c   -      -    Pending     57s    -        -         no operator has seen it yet',
  ])
})

test('without any, the answer names the namespace; -A asks all of them', async () => {
  const { session, terminal, asked } = scene([])
  await showMigrations(session, {})
  expect(terminal.written.at(-1)).toContain('no Migrations in namespace default')
  await showMigrations(session, { allNamespaces: true })
  expect(terminal.written.at(-1)).toContain('no Migrations in this cluster')
  expect(asked).toEqual(['default', undefined])
})

test('-w shows each change, and ends without an error', async () => {
  const changing = [migration('a', 1, { phase: 'Reserving' })]
  const { session, terminal, clock, stop } = scene(changing)
  const shown = showMigrations(session, { watch: true })
  await clock.advance(2_500)
  expect(terminal.pictures.map(picture => picture.includes('Reserving'))).toEqual(
    Array(terminal.pictures.length).fill(true),
  )
  changing[0] = migration('a', 1, { phase: 'Succeeded' })
  await clock.advance(1_000)
  expect(terminal.pictures.at(-1)).toContain('Succeeded')
  stop.abort()
  await shown
})
