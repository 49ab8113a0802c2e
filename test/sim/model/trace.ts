/** Prints a round's changes of the API's objects, and news of sentinels, to find the cause of a violation. */

import { prefix } from '../../../src/api/labels.ts'
import { type Migration, outcomeOf } from '../../../src/api/migration.ts'
import type { NodeReport } from '../../../src/api/node-report.ts'
import type { KubeObject } from '../../../src/kube/object.ts'
import type { Lease, Pod } from '../../../src/kube/resources.ts'
import type { Cluster } from './cluster.ts'

/** @param tell called for every change that affects pods, slots or memory */
export function trace(cluster: Cluster, tell: (what: string) => void): void {
  const last = new Map<string, string>()
  cluster.voted.push((machine, news) => {
    const about = 'slot' in news ? news.slot : machine.pods.get(news.name)?.name
    // The sentinel asks again and again.
    if (news.type !== 'alone') tell(`sentinel of ${machine.name}: ${about} ${news.type} in term ${news.term}`)
  })
  cluster.server.subscribe((resource, { type, object }) => {
    const said = wordsOf(resource, object)
    if (said === undefined) return
    const key = `${resource} ${object.metadata.uid}`
    const what = type === 'DELETED' ? 'is gone' : said
    if (last.get(key) === what) return
    last.set(key, what)
    tell(`${object.metadata.name}: ${what}`)
  })
}

function wordsOf(resource: string, object: KubeObject): string | undefined {
  switch (resource) {
    case 'pods':
      return wordsOfPod(object as Pod)
    case 'leases.coordination.k8s.io':
      return object.metadata.name === 'understudy-operator'
        ? `led by ${(object as Lease).spec?.holderIdentity || 'nobody'}`
        : wordsOfLease(object as Lease)
    case 'nodereports.backup.example.com':
      return wordsOfReport(object as NodeReport)
    case 'backuppodsets.backup.example.com':
      return `generation ${object.metadata.generation}`
    case 'migrations.backup.example.com':
      return wordsOfMigration(object as Migration)
    default:
      return undefined
  }
}

const wordsOfMigration = (migration: Migration): string => {
  const { status: { phase = 'Pending', source } = {} } = migration
  return `${phase} ${outcomeOf(migration)?.reason ?? ''} of slot ${source?.slot ?? '-'}`
}

const wordsOfPod = ({ metadata, spec, status }: Pod): string => {
  const { type, [`${prefix}slot`]: slot } = metadata.labels ?? {}
  const conditions = (status?.conditions ?? [])
    .filter(each => each.type !== 'Initialized' && each.type !== 'ContainersReady')
    .map(each => `${each.type.replace(prefix, '')}=${each.reason ?? each.status}`)
  const containers = (status?.containerStatuses ?? []).map(
    ({ name, restartCount, state }) => `${name}${restartCount}${state?.running ? '' : '-'}`,
  )
  const going = metadata.deletionTimestamp === undefined ? '' : ' going'
  return `${type}${slot === undefined ? '' : ` ${slot}`} on ${spec?.nodeName ?? 'no node'}${going} ${containers.join(' ')} ${conditions.join(' ')}`
}

const wordsOfLease = ({ metadata, spec }: Lease): string => {
  const noted = Object.entries(metadata.annotations ?? {})
    .filter(([key, value]) => value !== '' && !/seal|signers|heir-uid|ip$|restore-hash/.test(key))
    .map(([key, value]) => `${key.replace(prefix, '')}=${value}`)
  return `epoch ${spec?.leaseTransitions} ${noted.join(' ')}`
}

const wordsOfReport = ({ status }: NodeReport): string => {
  const slots = (status?.slots ?? []).map(
    ({ name, incarnation, role, generation, usable, reason }) =>
      `${name}/${incarnation.slice(0, 4)} ${role} ${generation > 0 ? 'has' : 'none'} ${usable ?? '-'} ${reason ?? ''}`,
  )
  return `${status?.ready ? 'ready' : 'not ready'}${status?.slotsKnown === false ? ', slots unknown' : ''} ${slots.join('; ')}`
}
