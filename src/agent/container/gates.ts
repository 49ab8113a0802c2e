/** Talks to the gates of cold backups on this node, through the socket that each gate has for its node's agent. */
import { basename, dirname } from 'node:path'
import { AgentError } from '../../api/agent-errors.ts'
import { gateContainerName } from '../../api/gate.ts'
import { gateSocket } from '../../api/pod-contract.ts'
import type { Clock } from '../../kube/clock.ts'
import { locateContainers } from './container.ts'
import type { ProcFs } from './process.ts'
import { askSocket } from './socket.ts'

export interface Gates {
  /**
   * Sends one line to a gate.
   *
   * @returns the first word of its answer: `woken`, `already`, `denied`, `malformed`.
   * @throws AgentError GateUnavailable, NotRunning; the signal's reason.
   */
  tell(pod: { readonly uid: string }, containerId: string, line: string, signal: AbortSignal): Promise<string>
  /** How many messages from anywhere it has refused since it began to wait. @throws as `tell`. */
  refused(pod: { readonly uid: string }, containerId: string, signal: AbortSignal): Promise<number>
}

export function createGates({ fs, clock }: { readonly fs: ProcFs; readonly clock: Clock }): Gates {
  const ask = async (uid: string, containerId: string, line: string, signal: AbortSignal) => {
    const [gate] = await locateContainers(fs, uid, [{ name: gateContainerName, containerId }])
    if (gate === undefined) throw new AgentError('NotRunning', gateContainerName)
    return askSocket(
      {
        root: `${fs.proc}/${gate.init.pid}/root`,
        directory: dirname(gateSocket),
        socket: basename(gateSocket),
        failure: 'GateUnavailable',
        clock,
        signal,
      },
      Buffer.from(line),
    )
  }
  return {
    async refused({ uid }, containerId, signal) {
      const text = await ask(uid, containerId, 'understudy/1 refused\n', signal)
      const [, count] = /^understudy\/1 refused (\d{1,15})\n$/.exec(text) ?? []
      if (count === undefined) throw new AgentError('GateUnavailable', 'not a reply of a gate')
      return Number(count)
    },
    async tell({ uid }, containerId, line, signal) {
      const text = await ask(uid, containerId, line, signal)
      const [, word] = /^understudy\/1 (woken|already|denied|malformed) \d{1,19}\n$/.exec(text) ?? []
      if (word === undefined) throw new AgentError('GateUnavailable', 'not a reply of a gate')
      return word
    },
  }
}
