/** Counters by which a kernel tells why it has dropped packets: those of a network namespace, and those of the machine. */
import { readdir, readFile, readlink } from 'node:fs/promises'

export type Counters = ReadonlyMap<string, number>

/** Names of counters that grow with dropped, refused or repeated packets, in any of the files. */
const tells =
  /drop|discard|fail|overflow|noroute|unreach|clash|chainlength|table_full|invalid|SynRetrans|SynCookies|ReqQ|PAWS|InErrs/i

/** A network namespace of this machine. */
export interface Network {
  /** Its process with the lowest number, which most likely lives longest. */
  readonly pid: number
  readonly pids: readonly number[]
  /** The names of up to three programs in it. */
  readonly programs: readonly string[]
}

/** Returns all network namespaces that have a process. */
export async function networks(): Promise<readonly Network[]> {
  const pids = (await readdir('/proc')).map(Number).filter(pid => pid > 0)
  const seen = await Promise.all(
    pids.map(async pid => {
      // A process that ends meanwhile has neither.
      const inode = await readlink(`/proc/${pid}/ns/net`).catch(() => undefined)
      const program = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')
      return { pid, inode, program: program.trim() }
    }),
  )
  const known = seen.filter(({ inode }) => inode !== undefined).sort((a, b) => a.pid - b.pid)
  return [...Map.groupBy(known, ({ inode }) => inode).values()].map(members => ({
    pid: members[0]?.pid ?? 0,
    pids: members.map(({ pid }) => pid),
    programs: [...new Set(members.map(({ program }) => program))].slice(0, 3),
  }))
}

/** Returns the counters in the network namespace of a process; none if there is no such process. */
export async function countersOf(pid: number): Promise<Counters> {
  const read = (file: string) => readFile(`/proc/${pid}/net/${file}`, 'utf8').catch(() => '')
  const [netstat, snmp, conntrack] = await Promise.all(['netstat', 'snmp', 'stat/nf_conntrack'].map(read))
  return new Map([...pairs(netstat ?? ''), ...pairs(snmp ?? ''), ...sums('conntrack', conntrack ?? '')])
}

/** Returns the counters that all namespaces of the machine share. */
export async function countersOfMachine(): Promise<Counters> {
  const [arp, softnet] = await Promise.all(
    ['/proc/net/stat/arp_cache', '/proc/net/softnet_stat'].map(file => readFile(file, 'utf8')),
  )
  // The second column of softnet_stat.
  const dropped = (softnet ?? '')
    .trim()
    .split('\n')
    .reduce((sum, line) => sum + Number.parseInt(line.split(' ')[1] ?? '0', 16), 0)
  return new Map([...sums('arp', arp ?? ''), ['softnet dropped', dropped]])
}

/** Returns the counters that tell of lost packets and have grown, with the difference. */
export const grown = (before: Counters, after: Counters): readonly string[] =>
  [...after].flatMap(([name, value]) => {
    const more = value - (before.get(name) ?? 0)
    return more > 0 && tells.test(name) ? [`${name} ${more}`] : []
  })

/** Parses files with pairs of lines, names and then values, each after the same word. */
export function pairs(text: string): Counters {
  const values = new Map<string, number>()
  const lines = text.trim().split('\n')
  for (let i = 0; i + 1 < lines.length; i += 2) {
    const [group = '', ...names] = (lines[i] ?? '').split(' ')
    const numbers = (lines[i + 1] ?? '').split(' ').slice(1)
    names.forEach((name, column) => {
      values.set(`${group.replace(':', '')}.${name}`, Number(numbers[column]))
    })
  }
  return values
}

/** Parses files with a line of names, and one of hexadecimal values for each processor. */
export function sums(group: string, text: string): Counters {
  const [head = '', ...rows] = text.trim().split('\n')
  return new Map(
    head
      .split(/\s+/)
      .filter(name => name !== '')
      .map((name, column) => [
        `${group}.${name}`,
        rows.reduce((sum, row) => sum + Number.parseInt(row.split(/\s+/)[column] ?? '0', 16), 0),
      ]),
  )
}
