/** Faults that aim at a move: its pods, their nodes, and what is between them. */
import type { Migration } from '../../../src/api/migration.ts'
import { pods } from '../../../src/kube/resources.ts'
import type { Cluster, ModelNode } from './cluster.ts'
import type { Hit, Move } from './commands.ts'
import { cutLink, later, lose } from './machine-faults.ts'
import { cordon, openMoves } from './moves.ts'

export function hitMove(
  cluster: Cluster,
  { of, how, forMs }: Extract<Move, { readonly type: 'hitMove' }>,
): void {
  const [migration] = openMoves(cluster)
  if (migration === undefined) return
  const uid = migration.status?.[of]?.uid
  const node = nodeOf(cluster, migration, of)
  const other = nodeOf(cluster, migration, of === 'source' ? 'target' : 'source')
  hits[how]({ cluster, uid, node, other, forMs })
}

interface Aim {
  readonly cluster: Cluster
  /** Uid of the pod; undefined: there is none yet. */
  readonly uid: string | undefined
  readonly node: ModelNode | undefined
  readonly other: ModelNode | undefined
  readonly forMs: number
}

const hits: { readonly [How in Hit]: (aim: Aim) => void } = {
  endApp: ({ cluster, uid }) => {
    if (uid !== undefined) cluster.killApp(uid, 'app')
  },
  deletePod: ({ cluster: { server, wantedGone }, uid }) => {
    const pod = server.list(pods).find(({ metadata }) => metadata.uid === uid)
    if (pod === undefined) return
    wantedGone.add(pod.metadata.uid)
    server.delete(pods, pod.metadata, { uid: pod.metadata.uid }, undefined)
  },
  endAgent: ({ cluster, node, forMs }) => {
    if (node === undefined) return
    cluster.endAgent(node, 'kill')
    later(cluster, forMs, () => cluster.startAgent(node))
  },
  powerOff: ({ cluster, node, forMs }) => {
    if (node !== undefined) lose(cluster, node, forMs)
  },
  cutTransfer: ({ cluster, node, other, forMs }) => {
    if (node !== undefined && other !== undefined)
      cutLink(cluster, node.machine, other.machine, { both: true, forMs })
  },
  refuseStops: ({ cluster, node, forMs }) => {
    if (node === undefined) return
    node.machine.refusesStops = true
    later(cluster, forMs, () => {
      node.machine.refusesStops = false
    })
  },
  refuseRestores: ({ cluster, node, forMs }) => {
    for (const { machine } of node === undefined ? cluster.nodes : [node]) {
      machine.refusesRestores = true
      later(cluster, forMs, () => {
        machine.refusesRestores = false
      })
    }
  },
  noRoom: ({ cluster, node, forMs }) => {
    for (const { machine } of cluster.nodes) {
      if (machine === node?.machine) continue
      cordon(cluster, machine.name, true)
      later(cluster, forMs, () => cordon(cluster, machine.name, false))
    }
  },
}

function nodeOf(
  { nodes, server }: Cluster,
  { status }: Migration,
  of: 'source' | 'target',
): ModelNode | undefined {
  const uid = status?.[of]?.uid
  const pod = server.list(pods).find(({ metadata }) => metadata.uid === uid)
  return nodes.find(({ machine }) => machine.name === (pod?.spec?.nodeName ?? status?.[of]?.node))
}
