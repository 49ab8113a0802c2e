/**
 * What files that are brought into a container may give to whoever runs or opens them: no more than the container could have
 * made by itself, by the rights of its first process. An archive and an image are another node's word.
 */
import type { GhostFile } from '../../checkpoint/images/reach.ts'
import { hasPermitted, type Rights } from './rights.ts'

const CAP_SETGID = 6n
const CAP_SETUID = 7n
const CAP_MKNOD = 27n
const CAP_SETFCAP = 31n

const ownUsers = ({ uids }: Rights): number[] => Object.values(uids)
const ownGroups = ({ gids, groups }: Rights): number[] => [...Object.values(gids), ...groups]

/** Options of `layer apply`. @param makers first processes of the containers that can write there. */
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

/** The same of files that have no name any more: CRIU makes them again, and they can be run by their descriptors. */
export function beyondMaking(ghosts: readonly GhostFile[], maker: Rights): string[] {
  return ghosts.flatMap(({ mode, uid, gid }) => {
    const kind = mode & kindMask
    if (devices.includes(kind)) return hasPermitted(maker, CAP_MKNOD) ? [] : ['a deleted device']
    if (kind !== regular) return []
    const isForeign =
      ((mode & 0o4000) !== 0 && !hasPermitted(maker, CAP_SETUID) && !ownUsers(maker).includes(uid)) ||
      ((mode & 0o2000) !== 0 && !hasPermitted(maker, CAP_SETGID) && !ownGroups(maker).includes(gid))
    return isForeign ? ['a deleted file that is run as its owner'] : []
  })
}
