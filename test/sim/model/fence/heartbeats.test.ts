import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nodeVoter, type Voter } from '../../../../src/api/fence.ts'
import { seededRandom } from '../../../../src/kube/random.ts'
import { isFenced } from '../../../../src/slot/decide/fence/fenced.ts'
import { createVirtualTime } from '../virtual-time.ts'
import { createMachine, type PodOnNode, servingApp } from '../world.ts'
import { createHeartbeats } from './heartbeats.ts'
import { createVotingRequests } from './requests.ts'
import { createVoting } from './voting.ts'

const timeoutMs = 3_000
const slot = 'default.web-0.1'
const port = 20_001
const key = '0'.repeat(64)

function clusterOf(seed: number) {
  const time = createVirtualTime()
  const kernels = ['a', 'b', 'c'].map(name => time.createParty(name))
  const machines = kernels.map((kernel, index) => createMachine(`n${index}`, index, kernel))
  const random = seededRandom(seed)
  const heartbeats = createHeartbeats({
    ...{ machines, time, party: time.createParty('network'), random },
    onNews: (machine, news) => {
      if (news.type === 'silent') statements.add(nodeVoter(machine.name, machine.voting.run))
    },
    onFreeze: () => {},
  })
  const statements = new Set<Voter>()
  const agents = machines.map(machine =>
    createVotingRequests(machine, time, time.createParty(`agent of ${machine.name}`), heartbeats),
  )
  const [primarys = createMachine('', 0, time.createParty(''))] = machines
  const app = { memory: { genesis: 'g1', until: 0 }, runsSince: 0 }
  const container = { name: 'app', id: 'x', restarts: 0, startedAt: 0, holds: false, up: true, app }
  const pod: PodOnNode = {
    ...{ uid: 'p', namespace: 'default', name: 'web-a', ip: '10.0.0.1', set: 'web', containers: [container] },
    ...{ gate: undefined, atGate: false, grave: undefined, isTold: false, killAt: undefined, killed: false },
    ...{ passesUntil: Number.POSITIVE_INFINITY, frozen: undefined, keptOut: new Set<string>() },
  }
  primarys.pods.set(pod.uid, pod)
  const voters = () => machines.slice(1).map(({ name, voting }) => nodeVoter(name, voting.run))
  const begin = async () => {
    for (const agent of agents) void agent.heartbeats(port)
    await time.runUntil(time.now() + 10)
    for (const [index, agent] of agents.entries())
      for (const { name, address, voting } of machines)
        if (name !== `n${index}`) void agent.addPeer({ name, address, port, run: voting.run, key })
    for (const agent of agents.slice(1))
      void agent.vote({ slot, term: 1, node: 'n0', run: primarys.voting.run, timeoutMs, isDenied: false })
    await time.runUntil(time.now() + 10)
  }
  const guard = () =>
    agents[0]?.guard({
      ...{ name: 'p', slot, term: 1, version: 1, timeoutMs, voters: voters(), cgroups: ['p'] },
      ...{ netns: { pid: 1, start: 1 }, next: undefined },
    })
  const serves = () => servingApp(primarys, 'p', time.now()) !== undefined
  return { time, machines, heartbeats, agents, pod, begin, guard, serves, statements, voters }
}

describe('heartbeats of the simulation', () => {
  it('let a primary serve while half of its voters answer', async () => {
    const { time, machines, heartbeats, pod, begin, guard, serves, statements } = clusterOf(1)
    await begin()
    const guarded = guard()
    await time.runUntil(1_000)
    await guarded
    const [, b, c] = machines
    b?.deafTo.add('n0')
    heartbeats.changed()
    await time.runUntil(20_000)
    expect([serves(), statements.size]).toEqual([true, 1])
    if (c !== undefined) c.partitioned = true
    heartbeats.changed()
    await time.runUntil(21_990)
    expect(serves()).toBe(true)
    await time.runUntil(22_010)
    expect([serves(), pod.frozen?.size, statements.size]).toEqual([false, 1, 1])
    if (c !== undefined) c.partitioned = false
    heartbeats.changed()
    await time.runUntil(22_300)
    expect([serves(), pod.frozen]).toEqual([true, undefined])
  })

  it('leave a request without answers as it was', async () => {
    const { time, machines, begin, guard, serves } = clusterOf(1)
    for (const machine of machines.slice(1)) machine.partitioned = true
    await begin()
    const guarded = expect(guard()).rejects.toThrow('too few')
    await time.runUntil(4_000)
    await guarded
    expect(serves()).toBe(true)
  })

  it('never let a primary serve once another pod may take over, whatever fails', async () => {
    const fault = fc.record({
      afterMs: fc.integer({ min: 1, max: 2_500 }),
      type: fc.constantFrom('cut', 'deafen', 'sleep', 'sentinel', 'reboot'),
      node: fc.nat({ max: 2 }),
      to: fc.nat({ max: 2 }),
      on: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.array(fault, { maxLength: 25 }), async (seed, faults) => {
        const { time, machines, heartbeats, begin, guard, serves, statements, voters } = clusterOf(seed)
        for (const [index, machine] of machines.entries()) machine.clockRate = [0.9, 1.1, 1.1][index] ?? 1
        const first = voters()
        await begin()
        void guard()?.catch(() => undefined)
        await time.runUntil(1_000)
        for (const { afterMs, type, node, to, on } of faults) {
          const end = time.now() + afterMs
          while (time.now() < end) {
            await time.runUntil(Math.min(end, time.now() + 100))
            if (isFenced({ voters: first }, statements)) expect(serves()).toBe(false)
          }
          const machine = machines[node]
          if (machine === undefined) continue
          if (type === 'cut') machine.partitioned = on
          if (type === 'deafen') machine.deafTo[on ? 'add' : 'delete'](`n${to}`)
          if (type === 'sleep') machine.kernel.paused = on
          if (type === 'sentinel' && on && machine.voting.isUp) heartbeats.end(machine)
          if (type === 'sentinel' && !on && !machine.voting.isUp) heartbeats.begin(machine)
          if (type === 'reboot' && node > 0) {
            machine.boot += 1
            machine.voting = createVoting(machine.name, machine.boot)
          }
          heartbeats.changed()
        }
      }),
      { numRuns: 300 },
    )
  })
})
