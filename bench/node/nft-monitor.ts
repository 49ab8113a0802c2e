import type { Cluster } from '../../playground/cluster.ts'
import { type LineProgram, startLineProgram } from './line-program.ts'

/** Records each change of a node's packet filter: kube-proxy's work as the kernel sees it. */
export type NftMonitor = LineProgram<{ readonly at: number; readonly text: string }>

/** @param now Unix ms */
export function startNftMonitor(playground: Cluster, node: string, now: () => number): NftMonitor {
  // The monitor ends with its standard input: a signal would only reach the program that entered the node's namespaces.
  const script = 'nft monitor & monitor=$!; cat > /dev/null; kill $monitor'
  const argv = playground.argvOnNode(node, ['sh', '-c', script])
  return startLineProgram('nft monitor', argv, text => ({ at: now(), text }))
}

/** Returns the Unix ms of the first change that names an address, or undefined if there was none. */
export function programmedAt(lines: NftMonitor['lines'], address: string): number | undefined {
  const name = new RegExp(`(?<![\\d.])${address.replaceAll('.', '\\.')}(?![\\d.])`)
  return lines.find(({ text }) => name.test(text))?.at
}
