import { expect, it } from 'vitest'
import { KubeError } from '../../kube/errors.ts'
import type { Action } from '../plan.ts'
import { makePod, makeSet } from '../testing/snapshots.ts'
import { act } from './act.ts'
import type { ActContext } from './context.ts'
import { createWakes } from './wakes.ts'

it('F31: silent gates hold up neither their own tier nor more than their own pods', async () => {
  const created: unknown[] = []
  const context = {
    set: makeSet(),
    api: {
      create: async (_: unknown, body: { metadata: { name: string } }) => {
        created.push(body.metadata.name)
        return body
      },
    },
    settings: { wakerImage: 'waker', wakeKey: new Uint8Array(32) },
    wakes: createWakes(() => Promise.resolve()),
    openGate: () => new Promise(() => {}),
    podOf: () => undefined,
    wrote: () => {},
    finishedLate: () => {},
    signal: new AbortController().signal,
  } as unknown as ActContext
  const wakeUps = Array.from({ length: 20 }, (_, slot): Action => {
    const pod = makePod(`c${slot}`, 'coldbackup')
    return { type: 'convert', pod, to: 'primary', role: { slot, epoch: 1, replaces: undefined }, wake: true }
  })
  const create = (name: string, kind: 'primary' | 'coldbackup'): Action => ({
    type: 'create',
    kind,
    name,
    strategy: 'random',
    role: undefined,
  })
  const outcomes = await act(context, {
    stages: [
      { tier: 'primaries', actions: [...wakeUps, create('p', 'primary')] },
      { tier: 'coldbackups', actions: [create('c', 'coldbackup')] },
    ],
    requeueAfterMs: undefined,
  })
  expect(outcomes.filter(({ type }) => type === 'pending')).toHaveLength(20)
  // F23: the tier below waits all the same.
  expect(created).toEqual(['p'])
})

it('a cold backup is woken before its label moves: a kubelet that has just heard of a change would look later', async () => {
  const done: string[] = []
  const write = (what: string, name: string) => {
    done.push(`${what} ${name}`)
    return { metadata: { name, uid: name, resourceVersion: `${done.length}` } }
  }
  const context = {
    set: makeSet(),
    api: {
      create: async (_: unknown, { metadata }: { metadata: { name: string } }) =>
        write('create', metadata.name),
    },
    urgentApi: {
      patch: async (_: unknown, { name }: { name: string }, { body }: { body: { metadata: object } }) =>
        write(`label ${JSON.stringify(body.metadata)}`, name),
    },
    settings: { wakerImage: 'waker', wakeKey: new Uint8Array(32) },
    wakes: createWakes(() => new Promise(() => {})),
    openGate: async () => {
      done.push('wake')
      return { type: 'opened', openedGate: 'containerd://1' }
    },
    podOf: () => ({ metadata: { labels: { type: 'coldbackup' } } }),
    wrote: () => {},
    signal: new AbortController().signal,
  } as unknown as ActContext
  const outcomes = await act(context, {
    stages: [
      {
        tier: 'hotbackups',
        actions: [
          { type: 'convert', pod: makePod('c', 'coldbackup'), to: 'hotbackup', role: undefined, wake: true },
        ],
      },
      {
        tier: 'coldbackups',
        actions: [{ type: 'create', kind: 'coldbackup', name: 'new', strategy: 'random', role: undefined }],
      },
    ],
    requeueAfterMs: undefined,
  })
  expect(done.map(line => line.split(' ')[0])).toEqual(['wake', 'label', 'create'])
  expect(done[1]).toContain('hotbackup')
  // In the same write: a gate that is known to be open is not opened again.
  expect(done[1]).toContain('containerd://1')
  expect(outcomes.map(({ type, action }) => `${action.type} ${type}`)).toEqual([
    'convert done',
    'create done',
  ])
})

it('an adoption that an admission rule refuses does not stop what comes after it', async () => {
  const promoted: unknown[] = []
  const set = makeSet()
  const metadata = { name: set.name, uid: set.uid, resourceVersion: '1' }
  const context = {
    set,
    api: { get: async () => ({ metadata }) },
    urgentApi: {
      patch: async (_: unknown, ref: { name: string }) => {
        if (ref.name === 'orphan') throw new KubeError('Forbidden', 'no adoptions here')
        promoted.push(ref.name)
        return { metadata }
      },
    },
    podOf: () => ({ metadata: { labels: { type: 'hotbackup' } } }),
    wrote: () => {},
    signal: new AbortController().signal,
  } as unknown as ActContext
  const outcomes = await act(context, {
    stages: [
      { tier: 'claims', actions: [{ type: 'adopt', pod: makePod('orphan', 'primary') }] },
      {
        tier: 'primaries',
        actions: [
          {
            type: 'convert',
            pod: makePod('hot', 'hotbackup'),
            to: 'primary',
            role: { slot: 0, epoch: 2, replaces: undefined },
            wake: false,
          },
        ],
      },
    ],
    requeueAfterMs: undefined,
  })
  expect(outcomes.map(({ type }) => type)).toEqual(['failed', 'done'])
  expect(promoted).toEqual(['hot'])
})
