import { readFile } from 'node:fs/promises'
import type { dangerousCapabilities } from '../../api/memory-rules.ts'
import {
  type CapabilitySet,
  type Credentials,
  capabilitySets,
  seccompModes,
} from '../../checkpoint/images/credentials.ts'
import { numbers, type ProcessStatus, type ProcFs, statusOf } from '../discover/process.ts'

/** What a process may do, from an image or from /proc. */
export type Rights = Pick<
  Credentials,
  'uids' | 'gids' | 'groups' | 'capabilities' | 'noNewPrivileges' | 'seccomp' | 'lsmProfile'
> &
  // Of a living process nobody but itself can ask for these.
  Partial<Pick<Credentials, 'secureBits'>>

/**
 * Rights of a living process. Absent lines (old kernels) count as none.
 *
 * @param lsm what its /proc/PID/attr/current says.
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

/** Of a process or a thread; undefined: it is gone. */
export async function livingRights(fs: ProcFs, task: number): Promise<Rights | undefined> {
  const status = await statusOf(fs, task)
  // Without a security module there is nothing to be read.
  const lsm = await readFile(`${fs.proc}/${task}/attr/current`, 'utf8').catch(() => '')
  return status === undefined ? undefined : rightsOf(status, lsm)
}

/**
 * AppArmor writes a mode behind the profile, which CRIU leaves out; SELinux writes the bare label. A profile whose mode is
 * `unconfined` confines as little as none: since AppArmor 4 distributions have some for runtimes (`runc (unconfined)`).
 */
function lsmRight(current: string): Pick<Rights, 'lsmProfile'> {
  const label = current.replace(/[\0\n]+$/, '')
  const [, profile = label, mode] = /^(.*) \(([a-z]+)\)$/.exec(label) ?? []
  return profile === '' || profile === 'unconfined' || mode === 'unconfined' ? {} : { lsmProfile: profile }
}

/** Numbers of those capabilities that memory cannot be kept with. */
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
/** SECBIT_KEEP_CAPS: anybody may set it for itself, and it gives nothing that is not there. */
const keepCaps = 1 << 4

/**
 * What `held` may do that a process started by `holder` could not come to: memory that arrives from another node must
 * not bring rights into a container that its own first process does not have. One line each; empty: nothing.
 *
 * A holder that may change its user could become any of them, as servers that begin as root do; so then any ids are fine.
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

/** Whether it may do that itself, without running a program that could. */
export const hasPermitted = (holder: Rights, capability: bigint): boolean =>
  (bits(holder.capabilities.permitted) & (1n << capability)) !== 0n

/** What a process of the holder could come to have. */
export const reachableCapabilities = (holder: Rights): bigint =>
  bits(limitOf('effective', holder, holder.capabilities.bounding))

/**
 * Nothing outside the bounding set can ever be had. Within it: a program with file capabilities can raise what it
 * permits only where new privileges are allowed; where they are not, what the holder has is all there is.
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
