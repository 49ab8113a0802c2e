/** Everything that can happen to a cluster, each as data. */
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { annotations, labels } from '../../../src/api/labels.ts'
import { type Pod, pods } from '../../../src/kube/resources.ts'
import { type Cluster, type ModelNode, setRef } from './cluster.ts'

/** Indexes are taken modulo the number of existing objects. */
export type Command =
  /** Nothing happens for a while. */
  | { readonly type: 'wait' }
  /** An app of a primary ends by itself. */
  | { readonly type: 'endApp'; readonly primary: number; readonly container: 'app' | 'side' | 'proxy' }
  /** The app of a primary answers no requests. With `exitsMs`, it exits so long after its agent has noticed. */
  | { readonly type: 'hangApp'; readonly primary: number; readonly forMs: number; readonly exitsMs?: number }
  | { readonly type: 'deletePod'; readonly pod: number; readonly force: boolean }
  /** Every pod with this label `type`, at once. */
  | { readonly type: 'deleteNamed'; readonly of: string; readonly force: boolean }
  | {
      readonly type: 'endAgent'
      readonly node: number
      readonly how: 'stop' | 'kill'
      readonly forMs: number
    }
  | { readonly type: 'pauseAgent'; readonly node: number; readonly forMs: number }
  /** Replaces every agent, one after the other. */
  | { readonly type: 'rollAgents' }
  | {
      readonly type: 'endOperator'
      readonly index: number
      readonly how: 'stop' | 'kill'
      readonly forMs: number
    }
  | { readonly type: 'pauseOperator'; readonly index: number; readonly forMs: number }
  | { readonly type: 'powerOff'; readonly node: number; readonly forMs: number }
  /** Powers off the machine of this primary. */
  | { readonly type: 'losePrimarysNode'; readonly primary: number; readonly forMs: number }
  /** A machine reaches neither the API server nor other machines. */
  | { readonly type: 'cutNode'; readonly node: number; readonly forMs: number; readonly apiOnly: boolean }
  /** A machine reaches the API server, but not the other machines. */
  | { readonly type: 'cutPeers'; readonly node: number; readonly forMs: number }
  | { readonly type: 'cutOperator'; readonly index: number; readonly forMs: number }
  /** The sentinel on this machine can stop no process, because another program traces them. */
  | { readonly type: 'refuseStops'; readonly node: number; readonly forMs: number }
  /** Containers start late, restores take longer, and restored apps answer late. */
  | {
      readonly type: 'slowStage'
      readonly node: number
      readonly startMs: number
      readonly restoreMs: number
      readonly answerMs: number
      readonly forMs: number
    }
  /** The events of one watch are late, or do not come. */
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
      /** Agents read no kind of owner. */
      readonly resource: Exclude<Lagging, 'sets'>
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
  /** An operator's creations succeed, but their responses are lost. */
  | { readonly type: 'loseCreates'; readonly index: number; readonly forMs: number }
  | { readonly type: 'slowCollector'; readonly forMs: number }
  | { readonly type: 'jumpClock'; readonly node: number; readonly byMs: number }
  | { readonly type: 'jumpOperatorsClock'; readonly index: number; readonly byMs: number }
  | { readonly type: 'scale'; readonly replicas: number }
  | { readonly type: 'editBackups'; readonly hot: number; readonly cold: number }
  | { readonly type: 'pauseSet'; readonly forMs: number }
  | { readonly type: 'recreateSet' }
  | { readonly type: 'handOver'; readonly primary: number }
  | { readonly type: 'editInterval'; readonly seconds: number }
  /** A merge patch of the set's spec. */
  | { readonly type: 'editSpec'; readonly spec: object }

export type Lagging = 'pods' | 'leases' | 'reports' | 'sets'
const resourceNames: Readonly<Record<Lagging, string>> = {
  pods: 'pods',
  leases: 'leases.coordination.k8s.io',
  reports: 'nodereports.backup.example.com',
  sets: 'backuppodsets.backup.example.com',
}

const quick = { slowStartMs: 0, slowRestoreMs: 0, slowAnswerMs: 0 }

const mine = (cluster: Cluster, type?: string): Pod[] =>
  cluster.server
    .list(pods)
    .filter(({ metadata }) => type === undefined || metadata.labels?.[labels.type] === type)
    .sort((a, b) => (a.metadata.uid < b.metadata.uid ? -1 : 1))

const pick = <T>(list: readonly T[], index: number): T | undefined => list[index % Math.max(list.length, 1)]

/** Carries out a command now and undoes it when its time is over. */
export function carryOut(cluster: Cluster, command: Command): void {
  const { time, nodes, server } = cluster
  const later = (ms: number, run: () => void) => time.after(cluster.master, ms, run)
  const node = (index: number): ModelNode => pick(nodes, index) as ModelNode
  const set = server.find(backupPodSets, setRef)
  const edit = (spec: object) => {
    if (server.find(backupPodSets, setRef)) server.patch(backupPodSets, setRef, 'merge', { spec }, undefined)
  }
  const primaryOf = (index: number) => pick(mine(cluster, 'primary'), index)
  const remove = ({ metadata }: Pod, force: boolean) => {
    cluster.wantedGone.add(metadata.uid)
    server.delete(pods, metadata, { uid: metadata.uid }, force ? 0 : undefined)
  }
  const lose = (it: ModelNode, forMs: number) => {
    cluster.powerOff(it)
    later(forMs, () => cluster.powerOn(it))
  }
  const forAWhile = <K extends 'partitioned' | 'refusesStops'>(it: ModelNode, what: K, forMs: number) => {
    it.machine[what] = true
    later(forMs, () => {
      it.machine[what] = false
    })
  }
  switch (command.type) {
    case 'wait':
      return
    case 'hangApp': {
      const uid = primaryOf(command.primary)?.metadata.uid
      for (const { machine, kubelet } of nodes) {
        const app = machine.pods.get(uid ?? '')?.containers.find(({ name }) => name === 'app')?.app
        if (app === undefined) continue
        app.hangsUntil = time.now() + command.forMs
        if (command.exitsMs !== undefined) app.exitsMs = command.exitsMs
        kubelet?.look()
        later(command.forMs, () => kubelet?.look())
      }
      return
    }
    case 'losePrimarysNode': {
      const name = primaryOf(command.primary)?.spec?.nodeName
      const it = nodes.find(({ machine }) => machine.name === name)
      if (it !== undefined) lose(it, command.forMs)
      return
    }
    case 'cutPeers':
      forAWhile(node(command.node), 'partitioned', command.forMs)
      return
    case 'refuseStops':
      forAWhile(node(command.node), 'refusesStops', command.forMs)
      return
    case 'slowStage': {
      const { machine } = node(command.node)
      const { startMs, restoreMs, answerMs } = command
      Object.assign(machine, { slowStartMs: startMs, slowRestoreMs: restoreMs, slowAnswerMs: answerMs })
      later(command.forMs, () => Object.assign(machine, quick))
      return
    }
    case 'loseCreates': {
      const link = cluster.operators[command.index % 2]?.link
      if (link === undefined) return
      link.losesCreates = true
      later(command.forMs, () => {
        link.losesCreates = false
      })
      return
    }
    case 'slowCollector':
      cluster.collectsFrom = time.now() + command.forMs
      return
    case 'jumpOperatorsClock': {
      const operator = cluster.operators[command.index % 2]
      if (operator !== undefined) operator.party.wallOffsetMs += command.byMs
      return
    }
    case 'editBackups':
      edit({ hotBackups: command.hot, coldBackups: command.cold })
      return
    case 'endApp': {
      const pod = pick(mine(cluster, 'primary'), command.primary)
      if (pod !== undefined) cluster.killApp(pod.metadata.uid, command.container)
      return
    }
    case 'deletePod': {
      const pod = pick(mine(cluster), command.pod)
      if (pod !== undefined) remove(pod, command.force)
      return
    }
    case 'deleteNamed':
      for (const pod of mine(cluster, command.of)) remove(pod, command.force)
      return
    case 'editSpec':
      edit(command.spec)
      return
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
      lose(node(command.node), command.forMs)
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
      if (set?.spec.checkpoint !== undefined) edit({ checkpoint: { interval: `${command.seconds}s` } })
      return
    default:
      command satisfies never
  }
}

/** Ends all faults, so that violations from then on have no excuse. */
export function heal(cluster: Cluster): void {
  const { time, nodes, server } = cluster
  cluster.collectsFrom = 0
  for (const [index, operator] of cluster.operators.entries()) {
    if (operator === undefined) cluster.startOperator(index)
    else {
      Object.assign(operator.link, { cut: false, refusals: 0, lostAnswers: 0, losesCreates: false })
      operator.link.lagMs.clear()
      time.resume(operator.party)
    }
  }
  for (const node of nodes) {
    cluster.powerOn(node)
    cluster.startAgent(node)
    node.link.cut = false
    node.link.lagMs.clear()
    const { machine } = node
    Object.assign(machine, { partitioned: false, refusesStops: false, ...quick })
    for (const { containers } of machine.pods.values())
      for (const { app } of containers) if (app !== undefined) app.hangsUntil = 0
    node.kubelet?.look()
    if (node.agent) time.resume(node.agent.party)
  }
  if (server.find(backupPodSets, setRef))
    server.patch(backupPodSets, setRef, 'merge', { spec: { paused: false } }, undefined)
}
