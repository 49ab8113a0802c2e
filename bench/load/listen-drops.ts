import { readFile } from 'node:fs/promises'
import { pidInPod } from '../node/process.ts'

/** Reasons for dropped SYNs in a network namespace. */
const counters = [
  'ListenOverflows',
  'ListenDrops',
  'TCPReqQFullDrop',
  'TCPBacklogDrop',
  'PAWSPassive',
] as const

/** Returns the kernel's counters of them in the network namespace of a pod's program. */
export async function listenDrops(podUid: string, program: string): Promise<string> {
  const pid = await pidInPod(podUid, program)
  if (pid === undefined) return 'no such process'
  const text = await readFile(`/proc/${pid}/net/netstat`, 'utf8')
  const values = netstat(text)
  return counters.map(name => `${name} ${values.get(name) ?? '?'}`).join(', ')
}

/** Parses /proc/PID/net/netstat. Lines come in pairs, names and then values, each after the same word. */
export function netstat(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>()
  const lines = text.trim().split('\n')
  for (let i = 0; i + 1 < lines.length; i += 2) {
    const names = (lines[i] ?? '').split(' ').slice(1)
    const numbers = (lines[i + 1] ?? '').split(' ').slice(1)
    names.forEach((name, column) => {
      values.set(name, Number(numbers[column]))
    })
  }
  return values
}
