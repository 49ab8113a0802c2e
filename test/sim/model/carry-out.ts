/** The effect of each command on the cluster. */
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { annotations, labels } from '../../../src/api/labels.ts'
import { isOfMigratingPod } from '../../../src/api/migrating-pod.ts'
import { type Pod, pods } from '../../../src/kube/resources.ts'
import { type Cluster, type ModelNode, setRef } from './cluster.ts'
import type { Command, Lagging } from './commands.ts'
import { hitMove } from './hit-move.ts'
import { apiAway, cut, cutLink, later, lose, putToSleep, restartSentinel } from './machine-faults.ts'
import { abortMove, cordon, drain, move } from './moves.ts'
import type { Link } from './network.ts'
import type { Party } from './virtual-time.ts'

const resourceNames: Readonly<Record<Lagging, string>> = {
  pods: 'pods',
  leases: 'leases.coordination.k8s.io',
  reports: 'nodereports.backup.example.com',
  sets: 'backuppodsets.backup.example.com',
}

const quick = { slowStartMs: 0, slowRestoreMs: 0, slowAnswerMs: 0 }

/** Carries out a command now and undoes it when its time is over. */
export function carryOut(cluster: Cluster, command: Command): void {
  const carry = handlers[command.type] as Handler<Command['type']>
  carry(command, cluster)
  cluster.heartbeats.changed()
}

type Handler<Type extends Command['type']> = (
  command: Extract<Command, { readonly type: Type }>,
  cluster: Cluster,
) => void

const handlers: { readonly [Type in Command['type']]: Handler<Type> } = {
  wait: () => {},
  endApp: ({ primary, container }, cluster) => {
    const pod = primaryOf(cluster, primary)
    if (pod !== undefined) cluster.killApp(pod.metadata.uid, container)
  },
  hangApp: ({ primary, forMs, exitsMs }, cluster) => {
    const { nodes, time } = cluster
    const uid = primaryOf(cluster, primary)?.metadata.uid
    for (const { machine, kubelet } of nodes) {
      const app = machine.pods.get(uid ?? '')?.containers.find(({ name }) => name === 'app')?.app
      if (app === undefined) continue
      app.hangsUntil = time.now() + forMs
      if (exitsMs !== undefined) app.exitsMs = exitsMs
      kubelet?.look()
      later(cluster, forMs, () => kubelet?.look())
    }
  },
  deletePod: ({ pod: index, force }, cluster) => {
    const pod = pick(mine(cluster), index)
    if (pod !== undefined) remove(cluster, pod, force)
  },
  deleteNamed: ({ of, force }, cluster) => {
    for (const pod of mine(cluster, of)) remove(cluster, pod, force)
  },
  endAgent: ({ node: index, how, forMs }, cluster) => {
    cluster.endAgent(nodeAt(cluster, index), how)
    later(cluster, forMs, () => cluster.startAgent(nodeAt(cluster, index)))
  },
  pauseAgent: ({ node: index, forMs }, cluster) => {
    const node = nodeAt(cluster, index)
    pause(cluster, node.agent, forMs, () => node.machine.asleep === undefined)
  },
  rollAgents: (_, cluster) => {
    for (const [index, each] of cluster.nodes.entries())
      later(cluster, index * 4_000, () => {
        cluster.endAgent(each, 'stop')
        later(cluster, 1_500, () => cluster.startAgent(each))
      })
  },
  endOperator: ({ index, how, forMs }, cluster) => {
    cluster.endOperator(index % 2, how)
    later(cluster, forMs, () => cluster.startOperator(index % 2))
  },
  pauseOperator: ({ index, forMs }, cluster) => pause(cluster, operatorAt(cluster, index), forMs),
  powerOff: ({ node, forMs }, cluster) => lose(cluster, nodeAt(cluster, node), forMs),
  losePrimarysNode: ({ primary, forMs }, cluster) => {
    const node = nodeOfPrimary(cluster, primary)
    if (node !== undefined) lose(cluster, node, forMs)
  },
  cutNode: ({ node, forMs, apiOnly }, cluster) => cut(cluster, nodeAt(cluster, node), forMs, apiOnly),
  cutPrimarysNode: ({ primary, forMs, apiOnly }, cluster) =>
    cut(cluster, nodeOfPrimary(cluster, primary), forMs, apiOnly),
  cutLink: ({ from, to, both, forMs }, cluster) =>
    cutLink(cluster, nodeAt(cluster, from).machine, nodeAt(cluster, to).machine, { both, forMs }),
  pauseMachine: ({ node, forMs }, cluster) => putToSleep(cluster, nodeAt(cluster, node), forMs),
  pausePrimarysMachine: ({ primary, forMs }, cluster) =>
    putToSleep(cluster, nodeOfPrimary(cluster, primary), forMs),
  restartSentinel: ({ node, forMs }, cluster) =>
    restartSentinel(cluster, nodeAt(cluster, node).machine, forMs),
  apiAway: ({ forMs }, cluster) => apiAway(cluster, forMs),
  cutPeers: ({ node, forMs }, cluster) =>
    forAWhile(cluster, forMs, nodeAt(cluster, node).machine, { partitioned: true }, { partitioned: false }),
  cutOperator: ({ index, forMs }, cluster) =>
    forAWhile(cluster, forMs, operatorAt(cluster, index)?.link, { cut: true }, { cut: false }),
  refuseStops: ({ node, forMs }, cluster) =>
    forAWhile(cluster, forMs, nodeAt(cluster, node).machine, { refusesStops: true }, { refusesStops: false }),
  slowStage: ({ node, startMs, restoreMs, answerMs, forMs }, cluster) => {
    const slow = { slowStartMs: startMs, slowRestoreMs: restoreMs, slowAnswerMs: answerMs }
    forAWhile(cluster, forMs, nodeAt(cluster, node).machine, slow, quick)
  },
  lagOperator: ({ index, ...lag }, cluster) => delay(cluster, operatorAt(cluster, index)?.link, lag),
  lagAgent: ({ node, ...lag }, cluster) => delay(cluster, nodeAt(cluster, node).link, lag),
  troubleOperator: ({ index, refusals, lostAnswers, forMs }, cluster) => {
    const link = operatorAt(cluster, index)?.link
    forAWhile(cluster, forMs, link, { refusals, lostAnswers }, { refusals: 0, lostAnswers: 0 })
  },
  loseCreates: ({ index, forMs }, cluster) => {
    const link = operatorAt(cluster, index)?.link
    forAWhile(cluster, forMs, link, { losesCreates: true }, { losesCreates: false })
  },
  slowCollector: ({ forMs }, cluster) => {
    cluster.collectsFrom = cluster.time.now() + forMs
  },
  jumpClock: ({ node, byMs }, cluster) => {
    const { machine, agent } = nodeAt(cluster, node)
    machine.kernel.wallOffsetMs += byMs
    if (agent) agent.party.wallOffsetMs = machine.kernel.wallOffsetMs
  },
  jumpOperatorsClock: ({ index, byMs }, cluster) => {
    const operator = operatorAt(cluster, index)
    if (operator !== undefined) operator.party.wallOffsetMs += byMs
  },
  scale: ({ replicas }, cluster) => {
    // A MigratingPod undoes it.
    const set = cluster.server.find(backupPodSets, setRef)
    if (set && !isOfMigratingPod(set)) edit(cluster, { replicas })
  },
  editBackups: ({ hot, cold }, cluster) => edit(cluster, { hotBackups: hot, coldBackups: cold }),
  pauseSet: ({ forMs }, cluster) => {
    edit(cluster, { paused: true })
    later(cluster, forMs, () => edit(cluster, { paused: false }))
  },
  nap: ({ forMs }, cluster) => {
    edit(cluster, { suspend: true })
    later(cluster, forMs, () => edit(cluster, { suspend: false }))
  },
  recreateSet: (_, cluster) => {
    const set = cluster.server.find(backupPodSets, setRef)
    if (set === undefined) return
    cluster.server.delete(backupPodSets, setRef, { uid: set.metadata.uid }, undefined)
    const isNumbered = set.metadata.ownerReferences !== undefined
    later(cluster, 50, () => cluster.createSet(set.spec, isNumbered))
  },
  handOver: ({ primary }, cluster) => {
    const pod = primaryOf(cluster, primary)
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return
    const body = { metadata: { annotations: { [annotations.handoverRequested]: 'now' } } }
    cluster.server.patch(pods, pod.metadata, 'merge', body, undefined)
  },
  editInterval: ({ seconds }, cluster) => {
    const set = cluster.server.find(backupPodSets, setRef)
    if (set?.spec.checkpoint !== undefined) edit(cluster, { checkpoint: { interval: `${seconds}s` } })
  },
  editSpec: ({ spec }, cluster) => edit(cluster, spec),
  move: (command, cluster) => {
    const pod = primaryOf(cluster, command.primary)
    if (pod !== undefined) move(cluster, pod, command)
  },
  hitMove: (command, cluster) => hitMove(cluster, command),
  refusePods: ({ forMs }, cluster) => {
    for (const operator of cluster.operators)
      forAWhile(cluster, forMs, operator?.link, { refusesPods: true }, { refusesPods: false })
  },
  abortMove: (command, cluster) => abortMove(cluster, command),
  drain: ({ node, forMs }, cluster) => drain(cluster, nodeAt(cluster, node).machine.name, forMs),
}

const mine = (cluster: Cluster, type?: string): Pod[] =>
  cluster.server
    .list(pods)
    .filter(({ metadata }) => type === undefined || metadata.labels?.[labels.type] === type)
    .sort((a, b) => (a.metadata.uid < b.metadata.uid ? -1 : 1))

const pick = <T>(list: readonly T[], index: number): T | undefined => list[index % Math.max(list.length, 1)]

const nodeAt = ({ nodes }: Cluster, index: number): ModelNode => pick(nodes, index) as ModelNode

const operatorAt = ({ operators }: Cluster, index: number): Cluster['operators'][number] =>
  operators[index % 2]

const primaryOf = (cluster: Cluster, index: number): Pod | undefined => pick(mine(cluster, 'primary'), index)

const nodeOfPrimary = (cluster: Cluster, index: number): ModelNode | undefined => {
  const name = primaryOf(cluster, index)?.spec?.nodeName
  return cluster.nodes.find(({ machine }) => machine.name === name)
}

function edit({ server }: Cluster, spec: object): void {
  if (server.find(backupPodSets, setRef)) server.patch(backupPodSets, setRef, 'merge', { spec }, undefined)
}

function remove({ wantedGone, server }: Cluster, { metadata }: Pod, force: boolean): void {
  wantedGone.add(metadata.uid)
  server.delete(pods, metadata, { uid: metadata.uid }, force ? 0 : undefined)
}

function pause(
  cluster: Cluster,
  process: { readonly party: Party } | undefined,
  forMs: number,
  mayResume = () => true,
): void {
  if (process === undefined) return
  process.party.paused = true
  later(cluster, forMs, () => {
    if (mayResume()) cluster.time.resume(process.party)
  })
}

function forAWhile<T extends object>(
  cluster: Cluster,
  forMs: number,
  it: T | undefined,
  faulty: Partial<T>,
  sound: Partial<T>,
): void {
  if (it === undefined) return
  Object.assign(it, faulty)
  later(cluster, forMs, () => Object.assign(it, sound))
}

/** Delays the events of one watch. */
function delay(
  cluster: Cluster,
  link: Link | undefined,
  { resource, lagMs, forMs }: { readonly resource: Lagging; readonly lagMs: number; readonly forMs: number },
): void {
  link?.lagMs.set(resourceNames[resource], lagMs)
  later(cluster, forMs, () => link?.lagMs.delete(resourceNames[resource]))
}

/** Ends all faults, so that violations from then on have no excuse. */
export function heal(cluster: Cluster): void {
  const { time, nodes, server } = cluster
  cluster.collectsFrom = 0
  cluster.isApiAway = false
  for (const [index, operator] of cluster.operators.entries()) {
    if (operator === undefined) cluster.startOperator(index)
    else {
      Object.assign(operator.link, { cut: false, refusals: 0, lostAnswers: 0 })
      Object.assign(operator.link, { losesCreates: false, refusesPods: false })
      operator.link.lagMs.clear()
      time.resume(operator.party)
    }
  }
  for (const node of nodes) {
    cluster.powerOn(node)
    cluster.startAgent(node)
    cordon(cluster, node.machine.name, false)
    node.link.cut = false
    node.link.lagMs.clear()
    const { machine } = node
    cluster.wake(node)
    if (!machine.voting.isUp) cluster.heartbeats.begin(machine)
    machine.deafTo.clear()
    Object.assign(machine, { partitioned: false, refusesStops: false, refusesRestores: false, ...quick })
    for (const { containers } of machine.pods.values())
      for (const { app } of containers) if (app !== undefined) app.hangsUntil = 0
    node.kubelet?.look()
    if (node.agent) time.resume(node.agent.party)
  }
  cluster.heartbeats.changed()
  const set = server.find(backupPodSets, setRef)
  if (set) {
    const spec = { paused: false, ...(set.spec.suspend && { suspend: false }) }
    server.patch(backupPodSets, setRef, 'merge', { spec }, undefined)
  }
}
