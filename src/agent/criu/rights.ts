import { readFile } from 'node:fs/promises'
import type { dangerousCapabilities } from '../../api/memory-rules.ts'
import {
  type CapabilitySet,
  type Credentials,
  capabilitySets,
  seccompModes,
} from '../../checkpoint/images/credentials.ts'
import { numbers, type ProcessStatus, type ProcFs, statusOf } from '../container/process.ts'

/** Rights of a process, from an image or from /proc. */
export type Rights = Pick<
  Credentials,
  'uids' | 'gids' | 'groups' | 'capabilities' | 'noNewPrivileges' | 'seccomp' | 'lsmProfile'
> &
  // Only a living process itself can read these.
  Partial<Pick<Credentials, 'secureBits'>>

/**
 * Returns the rights of a living process. Absent lines (old kernels) count as none.
 *
 * @param lsm contents of its /proc/PID/attr/current.
 */
export function rightsOf(status: ProcessStatus, lsm = ''): Rights {
  const ids = (name: string) => {
    const [real = 0, effective = 0, saved = 0, filesystem = 0] = numbers(status.fields.get(name))
    return { real, effective, saved, filesystem }
  }
  const set = (name: string) => (status.fields.get(name) ?? '').padStart(16, '0')
  return {
    uids: ids('Uid'),
    gids: ids('Gid'),
    groups: numbers(status.fields.get('Groups')),
    capabilities: {
      inheritable: set('CapInh'),
      permitted: set('CapPrm'),
      effective: set('CapEff'),
      bounding: set('CapBnd'),
      ambient: set('CapAmb'),
    },
    noNewPrivileges: status.fields.get('NoNewPrivs') === '1',
    seccomp: seccompModes[Number(status.fields.get('Seccomp') ?? 0)] ?? 'disabled',
    ...lsmRight(lsm),
  }
}

/** Returns the rights of a process or a thread; undefined if it is gone. */
export async function livingRights(fs: ProcFs, task: number): Promise<Rights | undefined> {
  const status = await statusOf(fs, task)
  // Without a security module, the file cannot be read.
  const lsm = await readFile(`${fs.proc}/${task}/attr/current`, 'utf8').catch(() => '')
  return status === undefined ? undefined : rightsOf(status, lsm)
}

/**
 * AppArmor appends a mode to the profile, which CRIU omits; SELinux writes the bare label. A profile in mode
 * `unconfined` confines as little as no profile: since AppArmor 4, distributions have such profiles for runtimes (`runc
 * (unconfined)`).
 */
function lsmRight(current: string): Pick<Rights, 'lsmProfile'> {
  const label = current.replace(/[\0\n]+$/, '')
  const [, profile = label, mode] = /^(.*) \(([a-z]+)\)$/.exec(label) ?? []
  return profile === '' || profile === 'unconfined' || mode === 'unconfined' ? {} : { lsmProfile: profile }
}

/** Numbers of the capabilities that exclude keeping a pod's memory. */
export const capabilityNumbers: Readonly<Record<(typeof dangerousCapabilities)[number], bigint>> = {
  DAC_READ_SEARCH: 2n,
  SYS_MODULE: 16n,
  SYS_RAWIO: 17n,
  SYS_PTRACE: 19n,
  SYS_ADMIN: 21n,
  MAC_OVERRIDE: 32n,
  MAC_ADMIN: 33n,
  PERFMON: 38n,
  BPF: 39n,
  CHECKPOINT_RESTORE: 40n,
}

const CAP_SETGID = 1n << 6n
const CAP_SETUID = 1n << 7n
const CAP_SETPCAP = 1n << 8n
/** SECBIT_KEEP_CAPS: any process may set it for itself, and it adds no capability. */
const keepCaps = 1 << 4

/**
 * Lists the rights in `held` that a process started by `holder` could not gain. Memory from another node must not bring
 * rights into a container that the container's first process does not have. One line each; empty: no excess.
 *
 * A holder that may change its user id could become any user, as servers that begin as root do. Then any ids are fine.
 */
export function excess(held: Rights, holder: Rights): string[] {
  const found: string[] = []
  const permitted = bits(holder.capabilities.permitted)
  const reachable = holder.capabilities.bounding

  if ((permitted & CAP_SETUID) === 0n) found.push(...foreignIds('uid', held.uids, holder.uids))
  if ((permitted & CAP_SETGID) === 0n) {
    found.push(...foreignIds('gid', held.gids, holder.gids))
    const own = new Set([...holder.groups, ...Object.values(holder.gids)])
    const foreign = held.groups.filter(group => !own.has(group))
    if (foreign.length > 0) found.push(`groups ${foreign.join(', ')}`)
  }
  for (const set of capabilitySets) {
    const more = bits(held.capabilities[set]) & ~bits(limitOf(set, holder, reachable))
    if (more !== 0n) found.push(`${set} capabilities ${more.toString(16)}`)
  }
  if (holder.noNewPrivileges && !held.noNewPrivileges) found.push('new privileges allowed')
  if (seccompModes.indexOf(held.seccomp) < seccompModes.indexOf(holder.seccomp))
    found.push(`seccomp ${held.seccomp} instead of ${holder.seccomp}`)
  if (((held.secureBits ?? 0) & ~keepCaps) !== 0 && (permitted & CAP_SETPCAP) === 0n)
    found.push(`secure bits ${(held.secureBits ?? 0).toString(16)}`)
  if (holder.lsmProfile !== undefined && held.lsmProfile !== holder.lsmProfile)
    found.push(`LSM profile ${held.lsmProfile ?? 'none'} instead of ${holder.lsmProfile}`)
  return found
}

/** True if the process may do that itself, without running another program. */
export const hasPermitted = (holder: Rights, capability: bigint): boolean =>
  (bits(holder.capabilities.permitted) & (1n << capability)) !== 0n

/** Returns the capabilities that a process of the holder could gain. */
export const reachableCapabilities = (holder: Rights): bigint =>
  bits(limitOf('effective', holder, holder.capabilities.bounding))

/**
 * The bounding set limits all others. Within it, a program with file capabilities can raise the permitted set, but only
 * where new privileges are allowed; elsewhere, the holder's permitted set is the limit.
 */
function limitOf(set: CapabilitySet, holder: Rights, reachable: string): string {
  if (set === 'bounding' || set === 'inheritable') return reachable
  return holder.noNewPrivileges ? holder.capabilities.permitted : reachable
}

function foreignIds(kind: string, held: Credentials['uids'], holder: Credentials['uids']): string[] {
  const own = new Set(Object.values(holder))
  const foreign = [...new Set(Object.values(held))].filter(id => !own.has(id))
  return foreign.length === 0 ? [] : [`${kind} ${foreign.join(', ')}`]
}

function bits(hex: string): bigint {
  return BigInt(`0x${hex === '' ? '0' : hex}`)
}
