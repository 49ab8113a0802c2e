import { expect, test } from 'vitest'
import type { BackupPodSet } from '../../api/backuppodset.ts'
import { type NodeReport, retireRequested } from '../../api/node-report.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import type { KubeObject } from '../../kube/object.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { report, set } from '../testing/objects.ts'
import { makeSession } from '../testing/session.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { uninstall } from './uninstall.ts'

/** A cluster in which `react` stands for agents and operator, and runs after each look. */
function cluster(reports: NodeReport[], sets: readonly BackupPodSet[] | 'gone' = []) {
  const labelled: KubeObject[] = reports.map(({ metadata }) => ({ metadata }))
  const world = { reports, labelled, looks: 0 }
  const clock = createFakeClock()
  const terminal = recordingTerminal()
  const asked: string[] = []
  let react: () => void = () => undefined
  const itemsOf = ({ plural }: { readonly plural: string }): readonly KubeObject[] => {
    switch (plural) {
      case 'nodereports':
        if (world.looks++ > 0) react()
        return world.reports
      case 'nodes':
        return world.labelled
      default:
        if (sets === 'gone') throw new KubeError('NotFound', 'no such kind')
        return sets
    }
  }
  const api = fakeApi({
    list: async resource => ({ items: itemsOf(resource), metadata: { resourceVersion: '1' } }),
    async patch(_, { name }, { body }) {
      asked.push(name)
      const old = world.reports.find(({ metadata }) => metadata.name === name)
      if (old === undefined) throw new KubeError('NotFound', name)
      const changed = { ...old, metadata: { ...old.metadata, ...body.metadata } }
      world.reports = world.reports.map(it => (it === old ? changed : it))
      return changed
    },
  })
  const session = makeSession({ api, clock, terminal })
  return {
    world,
    asked,
    terminal,
    onLook: (then: () => void) => {
      react = then
    },
    async run(options: { allowStateLoss?: boolean; timeout?: number } = {}) {
      const outcome = uninstall(session, { timeout: 60, ...options }).then(
        () => undefined,
        (error: unknown) => error,
      )
      let over = false
      void outcome.then(() => {
        over = true
      })
      while (!over) {
        await Promise.race([outcome, clock.untilSleepers(1)])
        if (!over) await clock.advance(1_000)
      }
      return outcome
    },
  }
}
const retired = (it: NodeReport): NodeReport => report(it.metadata.name, { retired: true, ready: false })
const keep = (it: NodeReport, { status }: NodeReport): NodeReport => ({ ...it, ...(status && { status }) })

test('every agent is asked once, all of them and the operator are waited for, and then it says what may follow', async () => {
  const { world, asked, terminal, onLook, run } = cluster([report('n1'), report('n2')])
  onLook(() => {
    if (world.looks === 2) world.reports = world.reports.map(it => keep(it, retired(it)))
    if (world.looks === 4) world.labelled = world.labelled.slice(1)
    if (world.looks === 6) world.labelled = []
  })
  expect(await run()).toBeUndefined()
  expect(asked.toSorted()).toEqual(['n1', 'n2'])
  expect(world.reports.every(({ metadata }) => metadata.annotations?.[retireRequested])).toBe(true)
  expect(terminal.written).toEqual([
    'nothing of Understudy is left on 2 nodes; now run: kubectl delete -k deploy/',
  ])
  expect(terminal.told).toEqual([expect.stringMatching(/^ok {2}the agents leave their nodes/)])
})

test('a node that comes while it waits is asked, too', async () => {
  const { world, asked, onLook, run } = cluster([report('n1')])
  world.labelled = []
  onLook(() => {
    if (world.looks === 2) world.reports = [...world.reports, report('n9')]
    world.reports = world.reports.map(it =>
      it.metadata.annotations?.[retireRequested] ? keep(it, retired(it)) : it,
    )
  })
  expect(await run()).toBeUndefined()
  expect(asked).toEqual(['n1', 'n9'])
})

test('while memory is kept nothing is touched, unless it may be lost', async () => {
  const refused = cluster([report('n1')], [set()])
  expect(await refused.run()).toMatchObject({ exitCode: 3, message: expect.stringContaining('shop/web') })
  expect(refused.asked).toEqual([])

  const allowed = cluster([report('n1')], [set()])
  expect(await allowed.run({ allowStateLoss: true, timeout: 2 })).toMatchObject({ exitCode: 4 })
  expect(allowed.asked).toEqual(['n1'])
  for (const none of ['gone', [set({}, { hotBackup: { mode: 'Warm' } })]] as const) {
    const free = cluster([retired(report('n1'))], none)
    free.world.labelled = []
    expect(await free.run()).toBeUndefined()
  }
})

test('what is left at the end of the time is told, node by node', async () => {
  const stuck = report('n2', {
    checks: [
      { name: 'retired', ok: false, message: 'parts of this installation are still on the node: criu (7)' },
    ],
  })
  const { world, run } = cluster([report('n1'), stuck])
  world.labelled = []
  const error = await run({ timeout: 3 })
  expect(error).toMatchObject({
    exitCode: 4,
    details: [
      'n1: its agent has not answered yet (last heard of 2030-01-01T00:59:58Z)',
      'n2: parts of this installation are still on the node: criu (7)',
    ],
  })
})
