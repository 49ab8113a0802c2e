/** Full protection: every slot could lose its primary, or the primary's node, without losing more than an interval. */
import { backupPodSets } from '../src/api/backuppodset.ts'
import { nodeReports, parseReport } from '../src/api/node-report.ts'
import { messageOf } from '../src/kube/errors.ts'
import { nodes, type Pod } from '../src/kube/resources.ts'
import { agentPods } from '../zoo/slots.ts'
import { protectionMs } from './bounds.ts'
import { operators } from './nemesis/parts.ts'
import { type Stage, setName, slotCount } from './stage.ts'
import { until } from './until.ts'

const isReady = ({ metadata, status }: Pod): boolean =>
  (metadata.deletionTimestamp === undefined &&
    status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')) ??
  false

/**
 * @param since Unix ms; each slot must have memory from after this
 * @returns why protection is not full; undefined: it is
 */
export async function lacksProtection(stage: Stage, since: number): Promise<string | undefined> {
  return (await nodesLack(stage)) ?? (await setLacks(stage)) ?? (await slotsLack(stage, since))
}

async function nodesLack({ api, cluster }: Stage): Promise<string | undefined> {
  const all = (await api.list(nodes, {})).items
  for (const { metadata, status } of all)
    if (!status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'))
      return `node ${metadata.name} is not Ready`
  const agents = (await agentPods(api)).filter(isReady)
  if (agents.length < cluster.nodes.length) return `${agents.length} agents are ready`
  if ((await operators({ api })).filter(isReady).length < 2) return 'an operator is not ready'
  return undefined
}

async function setLacks({ api, namespace }: Stage): Promise<string | undefined> {
  const { spec, status } = await api.get(backupPodSets, { namespace, name: setName })
  if (status?.readyReplicas !== spec.replicas) return `${status?.readyReplicas ?? 0} primaries are ready`
  if (status?.readyHotbackups !== spec.hotBackups)
    return `${status?.readyHotbackups ?? 0} hot backups are ready`
  const slots = status?.slots ?? []
  for (let slot = 0; slot < slotCount; slot += 1) {
    const found = slots.find(each => each.slot === slot)
    if (found?.ready !== true) return `slot ${slot} is not ready`
    if (found.protection !== 'Frozen') return `slot ${slot} has protection ${found.protection ?? 'None'}`
  }
  return undefined
}

async function slotsLack({ api, recorder }: Stage, since: number): Promise<string | undefined> {
  const reports = (await api.list(nodeReports, {})).items.flatMap(
    each => parseReport(each).status?.slots ?? [],
  )
  const isFenced = recorder.set()?.spec.failover?.fencing !== 'None'
  for (const lease of recorder.slots.values()) {
    const { slot, fence, incarnation, epoch } = lease
    if (isFenced && (fence?.isArmed !== true || fence.next !== undefined))
      return `slot ${slot} has no acknowledged voters`
    const isFresh = reports.some(
      report =>
        report.incarnation === incarnation &&
        report.epoch === epoch &&
        report.usable === 'Frozen' &&
        Date.parse(report.takenAt ?? '') > since,
    )
    if (!isFresh) return `slot ${slot} has no frozen memory of its primary from after the faults`
  }
  return undefined
}

/** @throws Error that says what is missing, after the time */
export async function untilProtected(stage: Stage, since: number): Promise<void> {
  let lacks: string | undefined
  await until(
    async () => {
      lacks = await lacksProtection(stage, since).catch(messageOf)
      return lacks === undefined
    },
    protectionMs,
    stage.signal,
  ).catch((error: unknown) => {
    throw new Error(`the set is not protected: ${lacks}`, { cause: error })
  })
}
