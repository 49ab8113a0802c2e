import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Cluster } from '../../playground/cluster.ts'

/** Records each change of a node's packet filter: kube-proxy's work as the kernel sees it. */
export interface NftMonitor {
  readonly lines: readonly { readonly at: number; readonly text: string }[]
  forget(): void
  stop(): Promise<void>
}

/** @param now Unix ms */
export function startNftMonitor(playground: Cluster, node: string, now: () => number): NftMonitor {
  // The monitor ends with its standard input: a signal would only reach the program that entered the node's namespaces.
  const script = 'nft monitor & monitor=$!; cat > /dev/null; kill $monitor'
  const [command = '', ...args] = playground.argvOnNode(node, ['sh', '-c', script])
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  let lines: { at: number; text: string }[] = []
  const ended = once(child, 'exit')
  createInterface({ input: child.stdout }).on('line', text => lines.push({ at: now(), text }))
  return {
    get lines() {
      return lines
    },
    forget() {
      lines = []
    },
    async stop() {
      child.stdin.end()
      await ended
    },
  }
}

/** Returns the Unix ms of the first change that names an address, or undefined if there was none. */
export function programmedAt(lines: NftMonitor['lines'], address: string): number | undefined {
  const name = new RegExp(`(?<![\\d.])${address.replaceAll('.', '\\.')}(?![\\d.])`)
  return lines.find(({ text }) => name.test(text))?.at
}
