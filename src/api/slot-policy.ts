/**
 * The policy of a slot: everything that agents have to know of its owner's wishes. The operator writes it into the
 * slot's Lease, so that agents read no kind of owner.
 */
import { hotBackupModes, limits } from './backuppodset.ts'
import { readAnnotation } from './json-annotation.ts'
import type { ParsedLiveness, ParsedMemory } from './memory.ts'
import { objectIn } from './unknown.ts'

export interface SlotPolicy
  extends Pick<
    ParsedMemory,
    'mode' | 'intervalMs' | 'maxFreezePercent' | 'containers' | 'keep' | 'disk' | 'volumeBytes'
  > {
  /** How to probe the liveness of the primary; absent: as the template's probe says. */
  readonly liveness?: ParsedLiveness
  /** The operator does nothing for the owner: a primary that dies gets no successor. */
  readonly paused: boolean
  /** Restore hash of the owner's present template, for pods that carry none themselves. */
  readonly restoreHash: string
}

const version = 1

/** Characters. Agents parse a policy at each change of its Lease. */
export const longestPolicy = 16_384

export const formatPolicy = (policy: SlotPolicy): string => JSON.stringify({ v: version, ...policy })

/**
 * Parses the text of the annotation; undefined if it is absent, of another version, or not a policy: then the policy is
 * unknown. That differs from a slot whose memory is not to be kept, which has no Lease.
 */
export function parsePolicy(text: string | undefined): SlotPolicy | undefined {
  const given = readAnnotation(text, longestPolicy)
  if (given?.['v'] !== version) return undefined
  const { mode: word, containers, disk, paused, restoreHash, liveness: probed } = given
  const mode = hotBackupModes.find((one): one is SlotPolicy['mode'] => one === word && one !== 'Warm')
  const intervalMs = within(given['intervalMs'], limits.interval)
  const maxFreezePercent = within(given['maxFreezePercent'], limits.maxFreezePercent)
  const keep = within(given['keep'], limits.keep)
  const volumeBytes = within(given['volumeBytes'], { min: 0, max: Number.MAX_SAFE_INTEGER })
  const liveness = probed === undefined ? undefined : livenessIn(probed)
  if (mode === undefined || intervalMs === undefined || maxFreezePercent === undefined) return undefined
  if (keep === undefined || volumeBytes === undefined || !areNames(containers)) return undefined
  if (typeof disk !== 'boolean' || typeof paused !== 'boolean') return undefined
  if (typeof restoreHash !== 'string' || !/^[0-9a-f]{16}$/.test(restoreHash)) return undefined
  if (probed !== undefined && liveness === undefined) return undefined
  return {
    ...{ mode, intervalMs, maxFreezePercent, containers, keep, disk, volumeBytes },
    ...(liveness && { liveness }),
    ...{ paused, restoreHash },
  }
}

const within = (value: unknown, { min, max }: { readonly min: number; readonly max: number }) =>
  Number.isInteger(value) && (value as number) >= min && (value as number) <= max
    ? (value as number)
    : undefined

function livenessIn(given: unknown): ParsedLiveness | undefined {
  const periodMs = within(objectIn(given)['periodMs'], limits.livenessPeriod)
  const failureThreshold = within(objectIn(given)['failureThreshold'], limits.failureThreshold)
  return periodMs === undefined || failureThreshold === undefined ? undefined : { periodMs, failureThreshold }
}

/** Whether these can be the names of a pod's containers. */
const areNames = (given: unknown): given is readonly string[] =>
  Array.isArray(given) &&
  given.length > 0 &&
  given.every(name => typeof name === 'string' && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name))
