import type { Cluster } from '../../playground/cluster.ts'
import { openKubeletLog, type PlegEvent } from '../observe/kubelet-log.ts'

/** The logs of all kubelets of a playground. */
export interface KubeletLogs {
  /** Forgets what has been written so far. */
  skip(): Promise<void>
  /** @param now Unix ms */
  of(node: string | undefined, now: number): Promise<readonly PlegEvent[]>
}

export function kubeletLogs(playground: Cluster): KubeletLogs {
  const logs = new Map(
    playground.nodes.map(node => [node, openKubeletLog(playground.logPath(node, 'kubelet'))]),
  )
  return {
    async skip() {
      await Promise.all([...logs.values()].map(log => log.skip()))
    },
    async of(node, now) {
      const log = logs.get(node ?? '')
      if (log === undefined) throw new Error(`no log of the kubelet on ${node}`)
      return log.read(now)
    },
  }
}
