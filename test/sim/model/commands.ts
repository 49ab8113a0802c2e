/** What can happen to a cluster, each as data. */
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { annotations, labels } from '../../../src/api/labels.ts'
import { type Pod, pods } from '../../../src/kube/resources.ts'
import { type Cluster, type ModelNode, setRef } from './cluster.ts'

/** Numbers are taken modulo what there is. */
export type Command =
  /** An app of a primary ends by itself. */
  | { readonly type: 'endApp'; readonly primary: number; readonly container: 'app' | 'side' | 'proxy' }
  | { readonly type: 'deletePod'; readonly pod: number; readonly force: boolean }
  | {
      readonly type: 'endAgent'
      readonly node: number
      readonly how: 'stop' | 'kill'
      readonly forMs: number
    }
  | { readonly type: 'pauseAgent'; readonly node: number; readonly forMs: number }
  /** Every agent is exchanged, one after the other. */
  | { readonly type: 'rollAgents' }
  | {
      readonly type: 'endOperator'
      readonly index: number
      readonly how: 'stop' | 'kill'
      readonly forMs: number
    }
  | { readonly type: 'pauseOperator'; readonly index: number; readonly forMs: number }
  | { readonly type: 'powerOff'; readonly node: number; readonly forMs: number }
  /** A machine reaches neither the API server nor other machines. */
  | { readonly type: 'cutNode'; readonly node: number; readonly forMs: number; readonly apiOnly: boolean }
  | { readonly type: 'cutOperator'; readonly index: number; readonly forMs: number }
  /** What one watch tells is late, or does not come. */
  | {
      readonly type: 'lagOperator'
      readonly index: number
      readonly resource: Lagging
      readonly lagMs: number
      readonly forMs: number
    }
  | {
      readonly type: 'lagAgent'
      readonly node: number
      readonly resource: Lagging
      readonly lagMs: number
      readonly forMs: number
    }
  | {
      readonly type: 'troubleOperator'
      readonly index: number
      readonly refusals: number
      readonly lostAnswers: number
      readonly forMs: number
    }
  | { readonly type: 'jumpClock'; readonly node: number; readonly byMs: number }
  | { readonly type: 'scale'; readonly replicas: number }
  | { readonly type: 'pauseSet'; readonly forMs: number }
  | { readonly type: 'recreateSet' }
  | { readonly type: 'handOver'; readonly primary: number }
  | { readonly type: 'editInterval'; readonly seconds: number }

export type Lagging = 'pods' | 'leases' | 'reports' | 'sets'
const resourceNames: Readonly<Record<Lagging, string>> = {
  pods: 'pods',
  leases: 'leases.coordination.k8s.io',
  reports: 'nodereports.backup.example.com',
  sets: 'backuppodsets.backup.example.com',
}

const mine = (cluster: Cluster, type?: string): Pod[] =>
  cluster.server
    .list(pods)
    .filter(({ metadata }) => type === undefined || metadata.labels?.[labels.type] === type)
    .sort((a, b) => (a.metadata.uid < b.metadata.uid ? -1 : 1))

const pick = <T>(list: readonly T[], index: number): T | undefined => list[index % Math.max(list.length, 1)]

/** Does it now, and takes it back when its time is over. */
export function carryOut(cluster: Cluster, command: Command): void {
  const { time, nodes, server } = cluster
  const later = (ms: number, run: () => void) => time.after(cluster.master, ms, run)
  const node = (index: number): ModelNode => pick(nodes, index) as ModelNode
  const set = server.find(backupPodSets, setRef)
  const edit = (spec: object) => {
    if (server.find(backupPodSets, setRef)) server.patch(backupPodSets, setRef, 'merge', { spec }, undefined)
  }
  switch (command.type) {
    case 'endApp': {
      const pod = pick(mine(cluster, 'primary'), command.primary)
      if (pod !== undefined) cluster.killApp(pod.metadata.uid, command.container)
      return
    }
    case 'deletePod': {
      const pod = pick(mine(cluster), command.pod)
      if (pod === undefined) return
      server.delete(pods, pod.metadata, { uid: pod.metadata.uid }, command.force ? 0 : undefined)
      return
    }
    case 'endAgent':
      cluster.endAgent(node(command.node), command.how)
      later(command.forMs, () => cluster.startAgent(node(command.node)))
      return
    case 'pauseAgent': {
      const { agent } = node(command.node)
      if (agent === undefined) return
      agent.party.paused = true
      later(command.forMs, () => time.resume(agent.party))
      return
    }
    case 'rollAgents':
      for (const [index, each] of nodes.entries())
        later(index * 4_000, () => {
          cluster.endAgent(each, 'stop')
          later(1_500, () => cluster.startAgent(each))
        })
      return
    case 'endOperator':
      cluster.endOperator(command.index % 2, command.how)
      later(command.forMs, () => cluster.startOperator(command.index % 2))
      return
    case 'pauseOperator': {
      const operator = cluster.operators[command.index % 2]
      if (operator === undefined) return
      operator.party.paused = true
      later(command.forMs, () => time.resume(operator.party))
      return
    }
    case 'powerOff':
      cluster.powerOff(node(command.node))
      later(command.forMs, () => cluster.powerOn(node(command.node)))
      return
    case 'cutNode': {
      const it = node(command.node)
      const isCut = (cut: boolean) => {
        it.link.cut = cut
        if (!command.apiOnly) it.machine.partitioned = cut
      }
      isCut(true)
      later(command.forMs, () => isCut(false))
      return
    }
    case 'cutOperator': {
      const operator = cluster.operators[command.index % 2]
      if (operator === undefined) return
      operator.link.cut = true
      later(command.forMs, () => {
        operator.link.cut = false
      })
      return
    }
    case 'lagOperator':
    case 'lagAgent': {
      const process =
        command.type === 'lagOperator' ? cluster.operators[command.index % 2] : node(command.node).agent
      const link = command.type === 'lagAgent' ? node(command.node).link : process?.link
      link?.lagMs.set(resourceNames[command.resource], command.lagMs)
      later(command.forMs, () => link?.lagMs.delete(resourceNames[command.resource]))
      return
    }
    case 'troubleOperator': {
      const link = cluster.operators[command.index % 2]?.link
      if (link === undefined) return
      link.refusals = command.refusals
      link.lostAnswers = command.lostAnswers
      later(command.forMs, () => {
        link.refusals = 0
        link.lostAnswers = 0
      })
      return
    }
    case 'jumpClock': {
      const it = node(command.node)
      it.machine.kernel.wallOffsetMs += command.byMs
      if (it.agent) it.agent.party.wallOffsetMs = it.machine.kernel.wallOffsetMs
      return
    }
    case 'scale':
      edit({ replicas: command.replicas })
      return
    case 'pauseSet':
      edit({ paused: true })
      later(command.forMs, () => edit({ paused: false }))
      return
    case 'recreateSet': {
      if (set === undefined) return
      server.delete(backupPodSets, setRef, { uid: set.metadata.uid }, undefined)
      later(50, () => cluster.createSet(set.spec))
      return
    }
    case 'handOver': {
      const pod = pick(mine(cluster, 'primary'), command.primary)
      if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return
      const body = { metadata: { annotations: { [annotations.handoverRequested]: 'now' } } }
      server.patch(pods, pod.metadata, 'merge', body, undefined)
      return
    }
    case 'editInterval':
      edit({ checkpoint: { interval: `${command.seconds}s` } })
      return
    default:
      command satisfies never
  }
}

/** Ends everything that is wrong, so that what follows has no excuse. */
export function heal(cluster: Cluster): void {
  const { time, nodes, server } = cluster
  for (const [index, operator] of cluster.operators.entries()) {
    if (operator === undefined) cluster.startOperator(index)
    else {
      Object.assign(operator.link, { cut: false, refusals: 0, lostAnswers: 0 })
      operator.link.lagMs.clear()
      time.resume(operator.party)
    }
  }
  for (const node of nodes) {
    cluster.powerOn(node)
    cluster.startAgent(node)
    node.link.cut = false
    node.link.lagMs.clear()
    node.machine.partitioned = false
    if (node.agent) time.resume(node.agent.party)
  }
  if (server.find(backupPodSets, setRef))
    server.patch(backupPodSets, setRef, 'merge', { spec: { paused: false } }, undefined)
}
