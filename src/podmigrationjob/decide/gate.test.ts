/** Several replacements with gates: each counts what those before it have, so that no two wait for each other. */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PodMigrationJobStatus } from '../../api/pod-migration-job.ts'
import { reservations } from '../../api/reservation.ts'
import { batch, big, node, replacement, sized, web } from '../testing/crowds.ts'
import { presentWith, viewWith } from '../testing/views.ts'
import { argsWith, worldOf } from '../testing/worlds.ts'
import { gatesOf } from './gate.ts'
import { reservationKeyOf } from './reservation.ts'
import { Room } from './room.ts'
import type { JobView, PreemptionFacts } from './view.ts'
import type { NodeRoom, PodFacts } from './world.ts'

interface Preempting {
  readonly uid: string
  pod: PodFacts
  status: PodMigrationJobStatus
  preemptions: readonly PreemptionFacts[]
}

const args = argsWith({ maxMigratingPerWorkload: '100%', maxUnavailablePerWorkload: '100%' })
const nameOf = (uid: string) => `reservation-${uid}`
const keyOf = (uid: string) => reservationKeyOf(reservations, nameOf(uid))

const preempting = (uid: string, over: Partial<PodFacts> = {}): Preempting => ({
  uid,
  pod: replacement({ name: nameOf(uid), uid: `r-${uid}`, ...over }),
  status: { phase: 'Running', source: { uid: `source-${uid}`, workload: web.key } },
  preemptions: [],
})

const viewOf = ({ uid, pod, status, preemptions }: Preempting): JobView =>
  viewWith(
    {
      mode: 'ReservationFirst',
      reservationOptions: { reservationRef: { name: nameOf(uid) }, preemptionOptions: {} },
    },
    {
      ...{ key: uid, uid, status, preemptions },
      reservation: presentWith(nameOf(uid), {
        ...{ uid: pod.uid, node: undefined, nominated: pod.nominated, isGated: true },
      }),
    },
  )

/** One cluster, whose jobs pass the gates step by step. A victim moves to another node with room; without one it does not give way. */
class Cluster {
  pods: PodFacts[]
  readonly nodes: readonly NodeRoom[]
  waiting: readonly Preempting[]

  constructor(pods: readonly PodFacts[], nodes: readonly NodeRoom[], jobs: readonly Preempting[]) {
    this.pods = [...pods]
    this.nodes = nodes
    this.waiting = jobs
  }

  gates() {
    const world = worldOf([...this.pods, ...this.waiting.map(({ pod }) => pod)], { nodes: this.nodes })
    const looks = { world, running: [], config: { ok: true, args }, mayLook: true } as const
    const { gates } = gatesOf(this.waiting.map(viewOf), looks)
    return this.waiting.map(job => ({ job, gate: gates.get(keyOf(job.uid)) }))
  }

  /** The scheduler counts all that run there, and those nominated for it with the same or a higher priority. */
  isBoundBy(pod: PodFacts, name: string): boolean {
    const others = this.waiting.flatMap(job =>
      job.pod.uid !== pod.uid && job.pod.nominated === name && job.pod.priority >= pod.priority
        ? [job.pod]
        : [],
    )
    const used = [...this.pods.filter(each => each.node === name), ...others, pod].reduce(
      (sum, { requests }) => sum + (requests['cpu'] ?? 0),
      0,
    )
    return used <= (this.nodes.find(each => each.name === name)?.allocatable['cpu'] ?? 0)
  }

  step(): boolean {
    const found = this.gates()
    const leaving = found.flatMap(({ gate }) => (gate?.type === 'giveWay' ? [gate] : []))
    expect(new Set(leaving.map(gate => gate.node)).size).toBe(leaving.length)
    let isChanged = false
    for (const { job, gate } of found) {
      const { nominated } = job.pod
      const node =
        gate?.type === 'room' || (gate?.type === 'giveWay' && gate.isAnnounced) ? gate.node : undefined
      if (gate?.type === 'open' && nominated !== undefined) {
        expect(leaving.map(other => other.node)).not.toContain(nominated)
        expect(this.isBoundBy(job.pod, nominated)).toBe(true)
        this.pods.push({ ...job.pod, node: nominated, nominated: undefined })
        this.waiting = this.waiting.filter(other => other !== job)
        isChanged = true
      } else if (gate?.type !== 'open' && nominated !== node) {
        job.pod = { ...job.pod, nominated: node }
        isChanged = true
      }
      if (gate?.type !== 'giveWay') {
        const { preemptionNodeName: _, ...status } = job.status
        job.status = status
      } else if (!gate.isAnnounced) {
        const preemptedPodsRef = gate.pods.map(({ uid, name }) => ({
          apiVersion: 'v1',
          kind: 'Pod',
          uid,
          name,
        }))
        job.status = { ...job.status, preemptionNodeName: gate.node, preemptedPodsRef }
        isChanged = true
      } else if (nominated === gate.node) {
        this.#leaves(job, gate.pods[0])
        isChanged = true
      }
    }
    return isChanged
  }

  #leaves(job: Preempting, victim: PodFacts | undefined): void {
    if (victim === undefined) return
    const others = this.waiting.map(({ pod }) => pod)
    const room = new Room(worldOf([...this.pods, ...others], { nodes: this.nodes }))
    const moved = { ...victim, uid: `${victim.uid}+`, node: undefined }
    const to = [...room.nodes.values()].find(each => each.name !== victim.node && room.fits(moved, each))
    const { uid, namespace, name } = victim
    const status = { phase: to === undefined ? 'Failed' : 'Succeed' } as const
    job.preemptions = [
      ...job.preemptions,
      { job: `c-${uid}`, pod: { namespace, name, uid }, status, reservation: undefined },
    ]
    if (to === undefined) return
    this.pods = this.pods.map(each => (each.uid === uid ? { ...moved, node: to.name } : each))
  }
}

describe('two jobs that preempt', () => {
  const nodes = [node('full', 4, big), node('also', 4, big), node('spare', 8)]
  const crowd = [
    ...['a', 'b'].map(name => sized(name, 2)),
    ...['c', 'd'].map(name => sized(name, 2, { node: 'also' })),
  ]

  it('PJ26: choose different nodes, and both get their room', () => {
    const cluster = new Cluster(crowd, nodes, [preempting('x'), preempting('y')])
    const found = cluster.gates().map(({ gate }) => gate?.type === 'giveWay' && gate.node)
    expect(found.toSorted()).toEqual(['also', 'full'])
    for (let steps = 0; steps < 20; steps += 1) cluster.step()
    expect(cluster.waiting).toEqual([])
  })

  it('PJ26: of one node the first has the room that is announced for it, and the other waits', () => {
    const cluster = new Cluster(
      crowd,
      [node('full', 4, big), node('spare', 8)],
      [preempting('x'), preempting('y')],
    )
    expect(cluster.gates().map(({ gate }) => gate?.type)).toEqual(['giveWay', 'closed'])
    for (let steps = 0; steps < 20; steps += 1) cluster.step()
    expect(cluster.waiting).toEqual([])
  })
})

it('PJ26: room that others have left is for the job that has announced it, whatever job is older', () => {
  const refs = [{ apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'a', uid: 'uid-a' }]
  const older = preempting('x')
  const later = preempting('y', { nominated: 'full' })
  later.status = { ...later.status, preemptionNodeName: 'full', preemptedPodsRef: refs }
  // `a` has gone.
  const cluster = new Cluster([sized('b', 2)], [node('full', 4, big), node('spare', 8)], [older, later])
  expect(cluster.gates().map(({ gate }) => gate?.type)).toEqual(['closed', 'open'])
})

it('PJ26: in any world no jobs block each other: each gets room, or there is none', () => {
  const nodes = [node('full', 4, big), node('also', 5, big), node('spare', 6)]
  const drawnPods = fc.array(
    fc.record({
      ...{ on: fc.constantFrom('full', 'also', 'spare'), cpu: fc.integer({ min: 1, max: 3 }) },
      priority: fc.nat(3),
    }),
    { maxLength: 10 },
  )
  const drawnJobs = fc.array(
    fc.record({ cpu: fc.integer({ min: 1, max: 4 }), priority: fc.integer({ min: 3, max: 5 }) }),
    {
      ...{ minLength: 2, maxLength: 3 },
    },
  )
  fc.assert(
    fc.property(drawnPods, drawnJobs, (drawn, jobs) => {
      const free = new Map(nodes.map(({ name, allocatable }) => [name, allocatable['cpu'] ?? 0]))
      const pods = drawn.flatMap(({ on, cpu, priority }, index) => {
        const left = (free.get(on) ?? 0) - cpu
        if (left < 0) return []
        free.set(on, left)
        return [sized(`p${index}`, cpu, { node: on, priority, owner: batch })]
      })
      const made = jobs.map(({ cpu, priority }, index) =>
        preempting(`j${index}`, { priority, requests: { cpu, pods: 1 } }),
      )
      const cluster = new Cluster(pods, nodes, made)
      let steps = 0
      while (cluster.step()) {
        steps += 1
        expect(steps).toBeLessThan(100)
      }
      for (const { gate } of cluster.gates()) expect(['closed', 'open']).toContain(gate?.type)
    }),
    { numRuns: 200 },
  )
})
