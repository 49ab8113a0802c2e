/** The kubectl plugin on real kubelets: its output is true, and the pods that it moves continue to count. */
import { describe, expect, it } from 'vitest'
import { runCli } from '../../../src/cli/program.ts'
import type { Promoted } from '../../../src/cli/promote/promote.ts'
import type { SetFacts } from '../../../src/cli/status/facts.ts'
import { recordingTerminal } from '../../../src/cli/testing/terminal.ts'
import { pods } from '../../../src/kube/resources.ts'
import { specimen } from '../../../zoo/specimens.ts'
import { eventually } from '../../support/eventually.ts'
import { needsNodes, playground } from '../lib/cluster.ts'
import { alone, createWorld, restartsOf, type World } from '../lib/world.ts'

const counter = specimen('counter')

async function cli({ namespace }: World, ...args: string[]) {
  const terminal = recordingTerminal()
  const { kubeconfigPath } = await playground()
  const exitCode = await runCli(
    ['--kubeconfig', kubeconfigPath, '-n', namespace, ...args],
    terminal,
    AbortSignal.timeout(120_000),
  )
  return { exitCode, out: terminal.written.join('\n'), err: terminal.told.join('\n') }
}

describe.skipIf(needsNodes())('kubectl understudy', () => {
  it('status, doctor, checkpoint and promote: the value goes on in the successor', async () => {
    await using world = await createWorld()
    const set = await world.createSet('kept', {
      ...{ replicas: 1, hotBackups: 1, template: counter.template },
      // Long interval: no checkpoint that is requested here would happen by itself in time.
      checkpoint: { interval: '10m' },
    })
    const facts = await eventually(async () => {
      const { out } = await cli(world, 'status', 'kept', '-o', 'json')
      const seen = JSON.parse(out) as SetFacts
      expect(seen.slots[0]?.protection).toBe('Frozen')
      expect(seen.troubles).toEqual([])
      return seen
    }, 120_000)
    expect((await cli(world, 'status', 'kept')).out).toContain('all conditions are as expected')

    await alone(world)
    // Agents report every 10 s, so the reports may show the disturbances of the last test for a while.
    await eventually(async () => {
      const { exitCode, out } = await cli(world, 'doctor')
      expect(exitCode, out).toBe(0)
      expect(out).toContain('nothing is broken')
    })

    const first = facts.slots[0]?.pod ?? ''
    const ip = (await world.api.get(pods, { namespace: world.namespace, name: first })).status?.podIP ?? ''
    for (let i = 0; i < 5; i += 1) await counter.add(ip)
    const saved = await cli(world, 'checkpoint', 'kept', '--wait')
    expect(saved.err).toMatch(
      /^ok {2}slot 0: save .*\nok {2}slot 0: wait until a pod could resume with it .*\(Frozen\)$/,
    )
    expect(saved.out).toMatch(
      new RegExp(`^slot 0: generation \\d+ of ${first}, .*; usable on .*\\(Frozen\\)`),
    )

    for (let i = 0; i < 4; i += 1) await counter.add(ip)
    const expected = await counter.read(ip)
    const moved = await cli(world, 'promote', 'kept', '0', '-o', 'json')
    expect(moved.exitCode, moved.err).toBe(0)
    const promoted = JSON.parse(moved.out) as Promoted
    expect(promoted).toMatchObject({ slot: 0, from: first, handedOver: true })
    const successor = await world.api.get(pods, { namespace: world.namespace, name: promoted.to })
    expect(await eventually(() => counter.read(successor.status?.podIP ?? ''))).toBe(expected)
    expect(restartsOf(successor)).toBe(0)
    await eventually(async () => expect((await set.get()).status?.slots?.[0]?.pod).toBe(promoted.to))
  })
})
