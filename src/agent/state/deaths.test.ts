import { describe, expect, it } from 'vitest'
import { type LeftMemory, podConditions } from '../../api/pod-contract.ts'
import { systemClock } from '../../kube/clock.ts'
import { silentLog } from '../../kube/log.ts'
import { isDead } from '../observe/pod-facts.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { PodCondition } from '../report/conditions.ts'
import type { Death } from '../sentinel/client.ts'
import { onStageOf } from '../tasks/on-stage-condition.ts'
import { container, nameOf, pod, understudy } from '../testing/fake/snapshots.ts'
import { createDeaths } from './deaths.ts'
import { parseWatchName, watchName } from './watch-name.ts'

function stand(
  pods: readonly PodView[],
  over: {
    matters?: boolean
    holds?: boolean
    hasHeir?: boolean
    hasGrant?: boolean
    fail?: number
    lostPages?: boolean
    left?: Omit<LeftMemory, 'at'>
  } = {},
) {
  const written: { pod: string; condition: PodCondition }[] = []
  const unwatched: string[] = []
  const released: string[] = []
  const endedEarly: string[] = []
  const present = new Map(pods.map(each => [each.uid, each]))
  let failures = over.fail ?? 0
  const deaths = createDeaths({
    podOf: uid => present.get(uid),
    slotOf: () => nameOf(),
    holds: () => over.holds ?? true,
    matters: () => over.matters ?? true,
    hasHeir: () => over.hasHeir ?? false,
    hasGrant: () => over.hasGrant ?? false,
    leftOf: () => over.left,
    patch: (target, condition) => {
      if (failures-- > 0) return Promise.reject(new Error('down'))
      written.push({ pod: target.name, condition })
      return Promise.resolve({})
    },
    unwatch: name => unwatched.push(name),
    release: uid => released.push(uid),
    lostPages: () => over.lostPages ?? false,
    endedEarly: uid => endedEarly.push(uid),
    changed: () => undefined,
    clock: systemClock,
    log: silentLog,
  })
  return { deaths, written, unwatched, released, endedEarly, present }
}

const death = (name: string): Death => ({ name, unixNs: 1n, grave: 'closed', graveMicroseconds: 200 })
const watchOf = (of: PodView, at = 0) => {
  const { name = '', containerId = '' } = of.containers[at] ?? {}
  return watchName({ uid: of.uid, container: name, containerId })
}

describe('deaths', () => {
  it('are told at once, before anything else gets its turn, and once', async () => {
    const two = [container(), container({ name: 'side', containerId: 'containerd://beef' })]
    const primary = pod('p', { containers: two })
    const { deaths, written } = stand([primary])
    deaths.guarded(primary)
    deaths.onDeath(death(watchOf(primary)))
    // In the same turn: the write does not wait for anything.
    expect(written).toHaveLength(1)
    deaths.onDeath(death(watchOf(primary, 1)))
    await deaths.settled()
    expect(written.map(each => each.pod)).toEqual(['p'])
    expect(written[0]?.condition).toMatchObject({ status: 'False', reason: 'Died' })
    expect(written[0]?.condition.message).toContain('container app (containerd://c0ffee) has ended')
    expect(written[0]?.condition.record).toEqual({ diedWith: nameOf() })
  })

  it('D7.grant: are reported after a pause if a grant lets the successor start without the report', async () => {
    const { deaths, written } = stand([pod('p')], { hasGrant: true })
    deaths.onDeath(death(watchOf(pod('p'))))
    expect(written).toEqual([])
    await deaths.settled()
    expect(written).toHaveLength(1)
  })

  it('D7.grant: are complete once the sentinel has told the end of each container, with closed redirects', () => {
    const two = [container(), container({ name: 'side', containerId: 'containerd://beef' })]
    const primary = pod('p', { containers: two })
    const { deaths } = stand([primary])
    const at = (ms: number) => ({ unixNs: BigInt(ms) * 1_000_000n })
    deaths.guarded(primary)
    deaths.onDeath({ ...death(watchOf(primary)), ...at(200) })
    expect(deaths.hasEnded('uid-p', 100)).toBe(false)
    deaths.onDeath({ ...death(watchOf(primary, 1)), ...at(210), grave: 'failed' })
    expect(deaths.hasEnded('uid-p', 100)).toBe(false)
    deaths.onDeath({ ...death(watchOf(primary, 1)), ...at(210) })
    expect(deaths.hasEnded('uid-p', 100)).toBe(true)
    expect(deaths.hasEnded('uid-p', 205)).toBe(false)
    // Another container runs in its place.
    deaths.guarded(pod('p', { containers: [two[0] ?? container(), container({ name: 'side' })] }))
    expect(deaths.hasEnded('uid-p', 100)).toBe(false)
    deaths.revive('uid-p')
    expect(deaths.hasEnded('uid-p', 100)).toBe(false)
  })

  it('D7.record: say what the node could restore, so that the operator need not wait for its report', async () => {
    const left = { epoch: 2, generation: 7, takenAt: '2030-01-01T00:00:00.000Z', usable: 'Staged' } as const
    const { deaths, written } = stand([pod('p')], { left })
    deaths.onDeath(death(watchOf(pod('p'))))
    const at = expect.any(Number)
    expect(written[0]?.condition.record).toEqual({ diedWith: nameOf(), left: { ...left, at } })
  })

  describe('D7.endpoints: and a pod may stay in its Services while its heir answers its connections', () => {
    const statusOf = async (
      over: Parameters<typeof stand>[1],
      grave: Death['grave'] = 'closed',
      p = pod('p'),
    ) => {
      const { deaths, written } = stand([p], over)
      deaths.onDeath({ ...death(watchOf(p)), grave })
      await deaths.settled()
      return written[0]?.condition
    }
    it('by the Lease and by its redirect', async () => {
      expect(await statusOf({ hasHeir: true })).toMatchObject({ status: 'True', reason: 'Died' })
      expect(await statusOf({ hasHeir: false })).toMatchObject({ status: 'False' })
      expect(await statusOf({ hasHeir: true }, 'none')).toMatchObject({ status: 'False' })
      expect(await statusOf({ hasHeir: true }, 'failed')).toMatchObject({ status: 'False' })
    })
    it('and the next agent changes neither that nor the message', async () => {
      const serving = { status: 'False', reason: 'Died', message: 'as told', record: { diedWith: nameOf() } }
      const told = (heirAnswers?: true) =>
        pod('p', { serving: { ...serving, ...(heirAnswers && { heirAnswers }) } })
      expect(await statusOf({ hasHeir: true }, 'closed', told())).toMatchObject(serving)
      expect(await statusOf({ hasHeir: true }, 'closed', told(true))).toMatchObject({
        ...serving,
        status: 'True',
      })
    })
    it('unless that is not known', async () => {
      const { deaths, written } = stand([pod('p')], { hasHeir: true })
      await deaths.declare(pod('p'), 'app', 'has ended')
      expect(written[0]?.condition).toMatchObject({ status: 'False' })
      // Nor is known how it ended.
      expect(written[0]?.condition.record).toMatchObject({ byItself: false })
    })
  })

  it('say so when memory that was still to come did not come', async () => {
    const { deaths, written } = stand([pod('p')], { lostPages: true })
    deaths.onDeath(death(watchOf(pod('p'))))
    expect(written[0]?.condition.message).toContain(
      'was killed, because the rest of its memory could not be loaded',
    )
    expect(written[0]?.condition.record).toEqual({ diedWith: nameOf(), byItself: false })
  })

  describe('of an app on its way to the stage', () => {
    const h = understudy('h', { kind: 'primary' })
    const endedIn = (over: Parameters<typeof stand>[1], now = h) => {
      const { deaths, written, endedEarly } = stand([now], over)
      deaths.arriving(h)
      deaths.onDeath(death(watchOf(h)))
      expect(written).toEqual([])
      return endedEarly
    }

    it('count as its own', () => expect(endedIn({})).toEqual([h.uid]))
    it('do not if the agent could not bring its pages', () =>
      expect(endedIn({ lostPages: true })).toEqual([]))
    it('do not if another pod was called', () => expect(endedIn({ holds: false })).toEqual([]))
    it('do not if the sentinel repeats what it told about an earlier container', () =>
      expect(endedIn({}, { ...h, containers: [container({ containerId: 'containerd://beef' })] })).toEqual(
        [],
      ))
    it('do not if the pod was declared dead', async () => {
      const { deaths, endedEarly } = stand([h])
      deaths.arriving(h)
      await deaths.declare(h, 'app', 'was ended')
      deaths.onDeath(death(watchOf(h)))
      expect(endedEarly).toEqual([])
    })
  })

  it('are told until the API server takes them', async () => {
    const { deaths, written } = stand([pod('p')], { fail: 3 })
    deaths.onDeath(death(watchOf(pod('p'))))
    await deaths.settled()
    expect(written).toHaveLength(1)
  })

  it('of memory that nobody else has are nobody else’s business: the kubelet starts the container again', () => {
    const primary = pod('p')
    const { deaths, written, unwatched } = stand([primary], { matters: false })
    deaths.guarded(primary)
    deaths.onDeath(death(watchOf(primary)))
    expect(written).toEqual([])
    expect(unwatched).toEqual([watchOf(primary)])
    const restarted = pod('p', { containers: [container({ containerId: 'containerd://beef' })] })
    deaths.inspect(restarted)
    expect(deaths.dead.size).toBe(0)
  })

  it('that happened while there was no agent are found in what the one before it watched', async () => {
    const restarted = pod('p', { containers: [container({ containerId: 'containerd://beef' })] })
    const { deaths, written } = stand([restarted])
    const name = watchOf(pod('p'))
    deaths.recall([{ name, pid: 7, start: 7, grave: 'closed', diedUnixNs: undefined }])
    deaths.inspect(restarted)
    await deaths.settled()
    expect(written.map(each => each.condition.reason)).toEqual(['Died'])
  })

  it('what runs on is not taken for dead after a restart of the agent', () => {
    const primary = pod('p')
    const { deaths, written } = stand([primary])
    deaths.recall([{ name: watchOf(primary), pid: 7, start: 7, grave: 'ready', diedUnixNs: undefined }])
    deaths.inspect(primary)
    // Between two runs a container has no id for a moment.
    deaths.inspect(pod('p', { containers: [container({ containerId: undefined, running: false })] }))
    expect(written).toEqual([])
  })

  it('D6.serving: of a pod on stage show in another container than the one its condition names', async () => {
    const first = understudy('h', { kind: 'primary' })
    const serving = { status: 'True', reason: 'OnStage', ...onStageOf(first, 3) }
    const { deaths, written } = stand([first])
    deaths.inspect({ ...first, serving })
    expect(written).toEqual([])
    deaths.inspect({ ...first, serving, containers: [container({ containerId: 'containerd://beef' })] })
    await deaths.settled()
    expect(written).toHaveLength(1)
  })

  it('are forgotten with the pod, and with the incarnation of its slot', () => {
    const primary = pod('p')
    const { deaths, released } = stand([primary])
    deaths.guarded(primary)
    void deaths.declare(primary, 'app', 'was ended')
    expect(isDead({ dead: deaths.dead }, primary, nameOf())).toBe(true)
    expect(isDead({ dead: deaths.dead }, primary, nameOf({ incarnation: 'ffffffff' }))).toBe(false)
    deaths.revive(primary.uid)
    expect(isDead({ dead: deaths.dead }, primary)).toBe(false)
    // The redirect of the death is gone for the new life.
    expect(released).toEqual([primary.uid])
    deaths.guarded(primary)
    deaths.forget(primary.uid)
    expect(deaths.known().size).toBe(0)
  })

  it('leave it to nobody else to say whether a dead pod serves', async () => {
    const primary = pod('p')
    const { deaths, written } = stand([primary])
    const late = {
      type: podConditions.serving,
      status: 'False',
      reason: 'NotAnswering',
      message: '',
    } as const
    const isWritten = async (condition: PodCondition) => {
      written.length = 0
      await deaths.patch(primary, condition)
      return written.length > 0
    }
    expect(await isWritten(late)).toBe(true)
    await deaths.declare(primary, 'app', 'has ended')
    expect(await isWritten(late)).toBe(false)
    expect(await isWritten({ ...late, reason: 'Died' })).toBe(true)
    expect(await isWritten({ ...late, type: podConditions.understudy })).toBe(true)
    deaths.revive(primary.uid)
    expect(await isWritten(late)).toBe(true)
  })

  it('names of watches say whose they are, and nothing else is read as one', () => {
    const name = { uid: 'u-1', container: 'app', containerId: '0123456789abcdef' }
    expect(parseWatchName(watchName(name))).toEqual(name)
    for (const wrong of ['', 'u', 'u/app', 'u/app/1/2', '//']) expect(parseWatchName(wrong)).toBeUndefined()
  })
})
