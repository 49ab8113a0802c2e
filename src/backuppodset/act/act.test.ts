// Long because every case needs the same plan and API.
import { expect, it } from 'vitest'
import { numberedSlotLeaseBody } from '../../api/numbered-slot.ts'
import { heldEndAnnotation } from '../../api/pod-contract.ts'
import { KubeError } from '../../kube/errors.ts'
import type { Lease } from '../../kube/resources.ts'
import { fakeApi, makeObject } from '../../kube/testing/fake-api.ts'
import { createInFlightPromotions } from '../../slot/act/in-flight-promotions.ts'
import { makePodObject } from '../../slot/testing/objects.ts'
import { makeLease } from '../../slot/testing/slots.ts'
import type { Action } from '../plan.ts'
import { makeContext } from '../testing/context.ts'
import { makePrimary } from '../testing/memory.ts'
import { makePod } from '../testing/snapshots.ts'
import { act } from './act.ts'
import type { ActContext } from './context.ts'

/** The set of `makeSet`, as the API server has it. */
const theSet = makeObject({ metadata: { name: 'bps', uid: 'set-uid' } })

it('F31: silent gates hold up neither their own tier nor more than their own pods', async () => {
  const created: unknown[] = []
  const context = makeContext({
    api: fakeApi({
      create: async (_, body) => {
        created.push(body.metadata?.name)
        return makeObject(body)
      },
    }),
    openGate: () => new Promise(() => {}),
  })
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
  const { outcomes } = await act(context, {
    tiers: [
      { tier: 'primaries', actions: [...wakeUps, create('p', 'primary')] },
      { tier: 'coldbackups', actions: [create('c', 'coldbackup')] },
    ],
    requeueAfterMs: undefined,
  })
  expect(outcomes.filter(({ type }) => type === 'pending')).toHaveLength(20)
  // F23: the next tier waits all the same.
  expect(created).toEqual(['p'])
})

it('a cold backup is woken before its label moves: a kubelet that has just heard of a change would look later', async () => {
  const done: string[] = []
  const write = (what: string, name = '') => {
    done.push(`${what} ${name}`)
    return makePodObject(name)
  }
  const context = makeContext({
    api: fakeApi({ create: async (_, { metadata }) => write('create', metadata?.name) }),
    urgentApi: fakeApi({
      patch: async (_, { name }, { body }) => write(`label ${JSON.stringify(body.metadata)}`, name),
    }),
    inFlightPromotions: createInFlightPromotions(() => new Promise(() => {})),
    openGate: async () => {
      done.push('wake')
      return { type: 'opened', openedGate: 'containerd://1' }
    },
    podOf: uid => makePodObject('c', { metadata: { uid, labels: { type: 'coldbackup' } } }),
  })
  const { outcomes } = await act(context, {
    tiers: [
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
  const context = makeContext({
    api: fakeApi({ get: async () => theSet }),
    urgentApi: fakeApi({
      patch: async (_, { name }) => {
        if (name === 'orphan') throw new KubeError('Forbidden', 'no adoptions here')
        promoted.push(name)
        return makePodObject(name)
      },
    }),
    podOf: uid => makePodObject('p', { metadata: { uid, labels: { type: 'hotbackup' } } }),
  })
  const { outcomes } = await act(context, {
    tiers: [
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

/** A context that calls `during` when it creates a pod, and counts creations and deletions. */
const counting = (during: (count: number) => void = () => {}, more: Partial<ActContext> = {}) => {
  const done = { created: 0, deleted: 0, urgently: 0 }
  const context = makeContext({
    api: fakeApi({
      create: async (_, body) => {
        done.created += 1
        during(done.created)
        return makeObject(body)
      },
      delete: async () => {
        done.deleted += 1
      },
    }),
    urgentApi: fakeApi({
      delete: async () => {
        done.urgently += 1
      },
    }),
    ...more,
  })
  return { done, context }
}
const creations = (count: number) =>
  Array.from(
    { length: count },
    (_, i): Action => ({
      type: 'create',
      kind: 'primary',
      name: `p${i}`,
      strategy: 'random',
      role: undefined,
    }),
  )
const planOf = (...actions: Action[][]) => ({
  tiers: actions.map(all => ({ tier: 'together' as const, actions: all })),
  requeueAfterMs: undefined,
})

it('a thousand creations are many passes: after some batches somebody looks at the set again', async () => {
  const { context, done } = counting()
  const { outcomes, isCut } = await act(context, planOf(creations(1000), creations(5)))
  expect(isCut).toBe(true)
  expect(done.created).toBe(8 + 16 + 32 + 32)
  expect(outcomes).toHaveLength(done.created)
  const short = await act(counting().context, planOf(creations(56), creations(4)))
  expect([short.isCut, short.outcomes.length]).toEqual([false, 60])
})

it('a pass that must yield ends with its batch, and what it has done is told', async () => {
  let isLost = false
  const { context, done } = counting(
    count => {
      isLost = count >= 10
    },
    { mustYield: () => isLost },
  )
  const { outcomes, isCut } = await act(context, planOf(creations(1000)))
  expect([isCut, done.created, outcomes.length]).toEqual([true, 24, 24])
})

it('no batch is begun after the end of the term, although no timer has told it yet', async () => {
  let leads = true
  const { context, done } = counting(
    () => {
      leads = false
    },
    { mayWrite: () => leads },
  )
  await expect(act(context, planOf(creations(1000)))).rejects.toThrow('no longer leads')
  expect(done.created).toBe(8)
})

it('deletions in bulk leave the urgent connections alone', async () => {
  const { context, done } = counting()
  const remove = (reason: 'Surplus' | 'Superseded') => (pod: string) =>
    ({ type: 'delete', pod: makePod(pod, 'primary'), reason }) as const
  await act(context, planOf(['a', 'b', 'c'].map(remove('Surplus')), ['d'].map(remove('Superseded'))))
  expect(done).toEqual({ created: 0, deleted: 3, urgently: 1 })
})

it('D16.last-save: a former primary does not stay for its hook, unless another container needs its time', async () => {
  const given: unknown[] = []
  const sleeps = { lifecycle: { preStop: { sleep: { seconds: 10 } } } }
  const podOf = (uid: string) =>
    makePodObject(uid, {
      metadata: { uid, annotations: uid === 'plain' ? {} : { [heldEndAnnotation]: '10' } },
      spec: {
        containers: [{ name: 'app', ...sleeps }, ...(uid === 'sidecar' ? [{ name: 'proxy' }] : [])],
      },
    })
  const context = makeContext({
    api: fakeApi({
      delete: async (_, { name }, options) => {
        given.push([name, options?.gracePeriodSeconds])
      },
    }),
    podOf,
  })
  const remove = (name: string, reason: 'Retired' | 'Surplus') =>
    ({ type: 'delete', pod: makePod(name, 'primary', { uid: name }), reason }) as const
  await act(
    context,
    planOf([
      remove('alone', 'Retired'),
      remove('sidecar', 'Retired'),
      remove('plain', 'Retired'),
      remove('runs', 'Surplus'),
    ]),
  )
  expect(given).toEqual([
    ['alone', 1],
    ['sidecar', undefined],
    ['plain', undefined],
    ['runs', undefined],
  ])
})

it('R31: nothing is done to a pod whose adoption was refused', async () => {
  const deleted: string[] = []
  const context = makeContext({
    urgentApi: fakeApi({
      patch: async () => {
        throw new KubeError('Forbidden', 'no adoptions here')
      },
    }),
    api: fakeApi({
      get: async () => theSet,
      delete: async (_, { name }) => {
        deleted.push(name)
      },
    }),
    podOf: uid => makePodObject(uid, { metadata: { uid, labels: {} } }),
  })
  const [orphan, own] = [makePod('orphan', 'hotbackup'), makePod('own', 'hotbackup')]
  const { outcomes } = await act(context, {
    tiers: [
      { tier: 'claims', actions: [{ type: 'adopt', pod: orphan }] },
      {
        tier: 'hotbackups',
        actions: [orphan, own].map(pod => ({ type: 'delete', pod, reason: 'Surplus' }) as const),
      },
    ],
    requeueAfterMs: undefined,
  })
  expect(outcomes.map(({ type, action }) => `${action.type} ${type}`)).toEqual([
    'adopt failed',
    'delete done',
  ])
  expect(deleted).toEqual(['own'])
})

it('R31: in a namespace that ends no application is started, nor anything else done that goes with it', async () => {
  const done: string[] = []
  const contextOf = (isNamespaceTerminating: boolean) =>
    makeContext({
      inFlightPromotions: createInFlightPromotions(() => new Promise(() => {})),
      openGate: async () => {
        done.push('wake')
        return { type: 'opened', openedGate: undefined }
      },
      urgentApi: fakeApi({ patch: async () => makePodObject('c') }),
      podOf: uid => makePodObject('c', { metadata: { uid, labels: { type: 'coldbackup' } } }),
      isNamespaceTerminating: async () => isNamespaceTerminating,
    })
  const woken: Action = {
    ...{ type: 'convert', pod: makePod('c', 'coldbackup'), to: 'primary', wake: true },
    role: { slot: 0, epoch: 2, replaces: undefined },
  }
  const plan = { tiers: [{ tier: 'primaries' as const, actions: [woken] }], requeueAfterMs: undefined }
  expect(await act(contextOf(true), plan)).toEqual({ outcomes: [], isCut: false })
  expect(done).toEqual([])
  expect((await act(contextOf(false), plan)).outcomes).toMatchObject([{ type: 'done' }])
  expect(done).toEqual(['wake'])
})

it('D7.consent: a handover counts as requested from before its write, and only if the API server has accepted it', async () => {
  const lease = makeLease(makePrimary('p0', 0), { handover: 'uid-h0', handovers: 2 })
  const acted = async (requestsHandover: boolean, answer: () => Promise<Lease>) => {
    let now = 5
    const requested: unknown[] = []
    const context = makeContext({
      api: fakeApi({
        patch: async () => {
          now = 9
          return answer()
        },
      }),
      monotonic: () => now,
      requestedHandover: ({ handovers }, at) => requested.push([handovers, at]),
    })
    const write: Action = {
      ...{ type: 'writeSlot', lease, version: '1', restarts: 0, stateLost: false },
      ...(requestsHandover && { requestsHandover }),
    }
    await act(context, { tiers: [{ tier: 'assignments', actions: [write] }], requeueAfterMs: undefined })
    return requested
  }
  const accepted = async () => makeObject(numberedSlotLeaseBody(lease))
  expect(await acted(true, accepted)).toEqual([[2, 5]])
  expect(await acted(false, accepted)).toEqual([])
  const lost = async () => Promise.reject(new KubeError('Timeout', 'no answer'))
  expect(await acted(true, lost)).toEqual([])
})
