/**
 * Limits the rights that restored files may give to a process that runs or opens them. A container gets only files that
 * its first process has the rights to make. Archives and images come from another node, and the agent does not trust
 * them.
 */
import type { GhostFile } from '../../checkpoint/images/reach.ts'
import { hasPermitted, type Rights } from './rights.ts'

const CAP_SETGID = 6n
const CAP_SETUID = 7n
const CAP_MKNOD = 27n
const CAP_SETFCAP = 31n

const ownUsers = ({ uids }: Rights): number[] => Object.values(uids)
const ownGroups = ({ gids, groups }: Rights): number[] => [...Object.values(gids), ...groups]

/** Returns the options of `rootfs apply`. @param makers first processes of the containers that can write there. */
export function bringOptions(makers: readonly Rights[]): string[] {
  const any = (capability: bigint) => makers.some(maker => hasPermitted(maker, capability))
  const idsOf = (option: string, capability: bigint, own: (maker: Rights) => readonly number[]) =>
    any(capability)
      ? [option, 'any']
      : [...new Set(makers.flatMap(own))].sort((a, b) => a - b).flatMap(id => [option, String(id)])
  return [
    ...idsOf('--user', CAP_SETUID, ownUsers),
    ...idsOf('--group', CAP_SETGID, ownGroups),
    ...(any(CAP_SETFCAP) ? ['--capabilities'] : []),
    ...(any(CAP_MKNOD) ? ['--devices'] : []),
  ]
}

const kindMask = 0o170000
const devices: readonly number[] = [0o020000, 0o060000]
const regular = 0o100000

/**
 * Applies the same rule to deleted files that are still open: CRIU makes them again, and a process can run them by
 * their descriptors.
 */
export function beyondMaking(ghosts: readonly GhostFile[], maker: Rights): string[] {
  return ghosts.flatMap(({ mode, uid, gid }) => {
    const kind = mode & kindMask
    if (devices.includes(kind)) return hasPermitted(maker, CAP_MKNOD) ? [] : ['a deleted device']
    if (kind !== regular) return []
    const isForeign =
      ((mode & 0o4000) !== 0 && !hasPermitted(maker, CAP_SETUID) && !ownUsers(maker).includes(uid)) ||
      ((mode & 0o2000) !== 0 && !hasPermitted(maker, CAP_SETGID) && !ownGroups(maker).includes(gid))
    return isForeign ? ['a deleted file with setuid or setgid'] : []
  })
}
