/**
 * The rights that the tasks of a dump get once they are restored. Images come from other nodes: the restoring node
 * checks these rights against those of the container in which the tasks will run.
 */
import { CheckpointError } from '../errors.ts'
import { readSingle } from './image-file.ts'
import { has, textOf, type ValueOf } from './message.ts'
import { coreEntry, type credsEntry, mmEntry, seccompEntry } from './messages.ts'
import { tasksOf } from './tasks.ts'

export interface Ids {
  readonly real: number
  readonly effective: number
  readonly saved: number
  readonly filesystem: number
}

export const capabilitySets = ['inheritable', 'permitted', 'effective', 'bounding', 'ambient'] as const
export type CapabilitySet = (typeof capabilitySets)[number]

export const seccompModes = ['disabled', 'strict', 'filter'] as const
export type SeccompMode = (typeof seccompModes)[number]

/** Credentials of one thread. All values as the kernel shows them in /proc/PID/status. */
export interface Credentials {
  /** Pid of the thread's process, in the pid namespace of the dump. */
  readonly pid: number
  readonly tid: number
  readonly uids: Ids
  readonly gids: Ids
  readonly groups: readonly number[]
  /** 16 hex digits each, as in the Cap lines of /proc/PID/status. */
  readonly capabilities: Readonly<Record<CapabilitySet, string>>
  readonly secureBits: number
  readonly noNewPrivileges: boolean
  readonly seccomp: SeccompMode
  /** prctl PR_GET_DUMPABLE of the process. Absent: not in the image. */
  readonly dumpable?: number
  /** SELinux label or AppArmor profile. Absent: none. */
  readonly lsmProfile?: string
}

/** CRIU's states for tasks that had ended: CRIU restores them as zombies, and they run nothing. */
const ended: ReadonlySet<number> = new Set([2, 6])

/** Returns one record for each thread that would run. @throws CheckpointError BadImage */
export async function credentialsOf(dir: string): Promise<readonly Credentials[]> {
  const found: Credentials[] = []
  for (const { pid, threads } of await tasksOf(dir)) {
    const leader = await readSingle(dir, `core-${pid}.img`, 'core', coreEntry)
    if (leader.tc !== undefined && ended.has(leader.tc.taskState)) continue
    const mm = await readSingle(dir, `mm-${pid}.img`, 'mm', mmEntry)
    const ofAll = await leaderFilterIsForAll(dir, leader)
    for (const tid of new Set([pid, ...threads])) {
      const name = `core-${tid}.img`
      const core = tid === pid ? leader : await readSingle(dir, name, 'core', coreEntry)
      const creds = core.threadCore?.creds
      if (creds === undefined) throw new CheckpointError('BadImage', `${name} has no credentials`)
      found.push({
        ...credentials(creds),
        pid,
        tid,
        seccomp: seccompMode(name, ofAll ? leader : core, leader),
        ...(has(mmEntry, mm, 'dumpable') ? { dumpable: mm.dumpable } : {}),
      })
    }
  }
  return found
}

function credentials(creds: ValueOf<typeof credsEntry>) {
  return {
    uids: { real: creds.uid, effective: creds.euid, saved: creds.suid, filesystem: creds.fsuid },
    gids: { real: creds.gid, effective: creds.egid, saved: creds.sgid, filesystem: creds.fsgid },
    groups: [...creds.groups],
    capabilities: {
      inheritable: capabilityWord(creds.capInh),
      permitted: capabilityWord(creds.capPrm),
      effective: capabilityWord(creds.capEff),
      bounding: capabilityWord(creds.capBnd),
      ambient: capabilityWord(creds.capAmb),
    },
    secureBits: creds.secbits,
    noNewPrivileges: creds.noNewPrivs !== 0,
    ...(creds.lsmProfile.length === 0 ? {} : { lsmProfile: textOf(creds.lsmProfile) }),
  }
}

/** 32-bit words, the low one first, as the 16 digits of /proc; a third word would show as more digits. */
function capabilityWord(words: readonly number[]): string {
  return words.reduceRight((hex, word) => hex + word.toString(16).padStart(8, '0'), '').padStart(16, '0')
}

/** SECCOMP_FILTER_FLAG_TSYNC: CRIU stores filters common to all threads with the leader, which gives them to all. */
const tsync = 1

async function leaderFilterIsForAll(dir: string, leader: ValueOf<typeof coreEntry>): Promise<boolean> {
  const thread = leader.threadCore
  if (thread === undefined || seccompModes[thread.seccompMode] !== 'filter') return false
  const { seccompFilters } = await readSingle(dir, 'seccomp.img', 'seccomp', seccompEntry)
  return ((seccompFilters[thread.seccompFilter]?.flags ?? 0) & tsync) !== 0
}

function seccompMode(
  name: string,
  core: ValueOf<typeof coreEntry>,
  leader: ValueOf<typeof coreEntry>,
): SeccompMode {
  const number = core.threadCore?.seccompMode || leader.tc?.oldSeccompMode || 0
  const mode = seccompModes[number]
  if (mode === undefined) throw new CheckpointError('BadImage', `${name} has seccomp mode ${number}`)
  return mode
}
