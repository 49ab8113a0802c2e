/** Agents that let the kernel record writes: clients find the same memory after a failover as with full dumps. */
import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { pidsOf } from '../../../playground/pids.ts'
import { nodeReports, parseReport } from '../../../src/api/node-report.ts'
import { pods } from '../../../src/kube/resources.ts'
import { perform } from '../../../zoo/perform.ts'
import { specimen } from '../../../zoo/specimens.ts'
import { eventually } from '../../support/eventually.ts'
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { alone, createWorld, type World } from '../lib/world.ts'

const agents = ['-n', 'understudy-agents', 'daemonset/understudy-agent'] as const
const argumentsPath = '/spec/template/spec/containers/0/args'

/** Restarts the agents with these arguments. @returns the exit codes that were seen of those before, by pod */
async function setArguments(
  { api }: World,
  args: readonly string[],
): Promise<ReadonlyMap<string, number | undefined>> {
  const ends = new Map<string, number | undefined>()
  const watch = setInterval(() => {
    void api.list(pods, { namespace: 'understudy-agents' }).then(({ items }) => {
      for (const { metadata, status } of items) {
        const ended = status?.containerStatuses?.[0]?.state?.terminated
        if (ended !== undefined) ends.set(metadata.name, ended.exitCode)
      }
    })
  }, 100)
  try {
    const change = JSON.stringify([{ op: 'replace', path: argumentsPath, value: args }])
    await kubectl('patch', ...agents, '--type=json', '-p', change)
    await kubectl('rollout', 'status', ...agents, '--timeout=300s')
  } finally {
    clearInterval(watch)
  }
  return ends
}

/** Commands of all processes of this machine, so of all nodes. */
async function commands(): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir('/proc'))
    if (/^\d+$/.test(entry)) found.push(await readFile(`/proc/${entry}/cmdline`, 'utf8').catch(() => ''))
  return found
}

const techniques = async ({ api }: World) =>
  (await api.list(nodeReports, {})).items.flatMap(report =>
    (parseReport(report).status?.checks ?? []).flatMap(({ name, message }) =>
      name === 'record-of-writes' ? [message] : [],
    ),
  )

it.skipIf(needsNodes())(
  'memory survives, seen by a client, if only written pages are saved: refreshed, failed over, and failed over again',
  async ({ skip }) => {
    await using world = await createWorld()
    await alone(world)
    const { nodes } = await playground()
    // Agents that an earlier test has restarted check their nodes first. All nodes have one kernel.
    const said = await eventually(async () => {
      const found = await techniques(world)
      expect(found).toHaveLength(nodes.length)
      return found
    }, 120_000)
    const other = said.find(message => !message.startsWith('WriteProtect'))
    if (other !== undefined) skip(`this kernel cannot: ${other}`)
    const before = JSON.parse(await kubectl('get', ...agents, '-o', 'jsonpath={..args}')) as string[]
    await setArguments(world, [...before, '--record-writes'])
    try {
      let tracked = 0
      const watch = setInterval(() => {
        void commands().then(all => {
          tracked = Math.max(tracked, all.filter(it => /tracker\0serve\0/.test(it)).length)
        })
      }, 1_000)
      try {
        const performances = await Promise.all(
          ['nodejs', 'python'].map(name => perform({ ...world, pidsOf }, specimen(name), { refreshes: 6 })),
        )
        for (const { failovers } of performances) {
          expect(failovers.map(({ read }) => read)).toEqual(failovers.map(({ expected }) => expected))
          expect(failovers.map(({ restarts }) => restarts)).toEqual(failovers.map(() => 0))
        }
      } finally {
        clearInterval(watch)
      }
      expect(tracked).toBeGreaterThan(0)
    } finally {
      const ends = await setArguments(world, before)
      // They exit, also while another agent holds a connection to them open, and are not killed after their grace.
      expect(ends.size).toBeGreaterThan(0)
      expect([...ends.values()]).toEqual([...ends.values()].map(() => 0))
    }
  },
)
