/** The evidence of a violation: objects and logs, which end with their pods. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { backupPodSets } from '../src/api/backuppodset.ts'
import { nodeReports } from '../src/api/node-report.ts'
import { messageOf } from '../src/kube/errors.ts'
import { events, leases, pods } from '../src/kube/resources.ts'
import type { Stage } from './stage.ts'

const ofNode = 'cat /run/understudy/sentinel.log; tail -n 4000 /var/log/pods/understudy-*/*/*.log'

/** Writes the objects of the set, and the logs of operators, agents and sentinels, into a directory. Never rejects. */
export async function keepEvidence({ api, cluster, namespace }: Stage, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  const keep = async (name: string, read: () => Promise<string>) =>
    writeFile(join(directory, name), await read().catch(messageOf))
  const list = (resource: Parameters<typeof api.list>[0], query: object) => async () =>
    JSON.stringify((await api.list(resource, query)).items, undefined, 1)
  await Promise.all([
    ...cluster.nodes.map(node => keep(`${node}.log`, () => cluster.inNode(node, ['sh', '-c', ofNode]))),
    keep('sets.json', list(backupPodSets, { namespace })),
    keep('pods.json', list(pods, { namespace })),
    keep('leases.json', list(leases, { namespace })),
    keep('events.json', list(events, { namespace })),
    keep('nodereports.json', list(nodeReports, {})),
  ])
}
