/** The protocol between two agents: requests for generations with the headers of their answers, and uses of grants. */
import type { GoAnswer, GoRequest } from '../../api/grant.ts'
import { parseSlotKey, type SlotKey, slotFieldsOf, slotKeyIn } from '../../api/slot-key.ts'
import { type Manifest, slotName } from '../../checkpoint/manifest.ts'

/**
 * Identifies a generation within a slot's incarnation. The number alone does not, as each epoch continues to count by itself.
 */
export interface Version {
  readonly epoch: number
  readonly generation: number
}

export interface GenerationRequest {
  readonly slot: SlotKey
  /** The newest generation of the asking node. The answer is a newer one. */
  readonly after: Version | undefined
  /** A generation that the answer may be a difference to, if the source has it, too. */
  readonly base: Version | undefined
}

export interface GenerationHead {
  readonly version: Version
  /** The generation that the stream is the difference to. Absent: none. */
  readonly base: Version | undefined
  /** Milliseconds from the stop of the pod until the head was sent. */
  readonly ageMs: number
}

const generationsPath = '/v1/generations'

export const versionOf = ({ epoch, generation }: Manifest): Version => ({ epoch, generation })

export const sameVersion = (a: Version | undefined, b: Version | undefined): boolean =>
  a?.epoch === b?.epoch && a?.generation === b?.generation

export const formatVersion = (version: Version | undefined): string =>
  version === undefined ? 'none' : `${version.epoch}.${version.generation}`

/** Parses a version. `undefined` is one, too: none. */
export function parseVersion(text: unknown): { readonly version: Version | undefined } | 'malformed' {
  if (text === 'none') return { version: undefined }
  const [, epoch, generation] =
    typeof text === 'string' ? (/^(0|[1-9]\d{0,14})\.([1-9]\d{0,14})$/.exec(text) ?? []) : []
  if (epoch === undefined || generation === undefined) return 'malformed'
  return { version: { epoch: Number(epoch), generation: Number(generation) } }
}

/** Returns the path of a request. @throws CheckpointError BadManifest for an invalid slot. */
export function formatRequest({ slot, after, base }: GenerationRequest): string {
  const name = slotName(slot)
  const { namespace, set, slot: number, life } = slotFieldsOf(slot)
  // Agents of the version before read only this form; a later version sends the name.
  const path = set === undefined ? name : [namespace, set, number, life].join('/')
  return `${generationsPath}/${path}?after=${formatVersion(after)}&base=${formatVersion(base)}`
}

/** Parses only the output of `formatRequest`, as there is no other client. */
export function parseRequest(path: string): GenerationRequest | undefined {
  const [, name = '', after, base] =
    /^\/v1\/generations\/([^?]+)\?after=([^&]*)&base=([^&]*)$/.exec(path) ?? []
  const key = name.includes('/') ? slotBefore(name) : parseSlotKey(name)
  const [has, offers] = [parseVersion(after), parseVersion(base)]
  if (key === undefined || has === 'malformed' || offers === 'malformed') return undefined
  return { slot: key, after: has.version, base: offers.version }
}

/** Reads the path of the version before: `NAMESPACE/SET/NUMBER/LIFE`. */
function slotBefore(path: string): SlotKey | undefined {
  const [, namespace, set, slot, life] = /^([^/]+)\/([^/]+)\/(0|[1-9]\d{0,8})\/([^/]+)$/.exec(path) ?? []
  return slotKeyIn({ namespace, set, slot: Number(slot), life })
}

const headers = {
  version: 'understudy-version',
  base: 'understudy-base',
  age: 'understudy-age-ms',
} as const

export const formatHead = ({ version, base, ageMs }: GenerationHead): Record<string, string> => ({
  'content-type': 'application/octet-stream',
  [headers.version]: formatVersion(version),
  [headers.base]: formatVersion(base),
  [headers.age]: String(Math.max(0, Math.round(ageMs))),
})

export function parseHead(fields: Readonly<Record<string, unknown>>): GenerationHead | undefined {
  const version = parseVersion(fields[headers.version])
  const base = parseVersion(fields[headers.base])
  const age = fields[headers.age]
  if (version === 'malformed' || base === 'malformed' || version.version === undefined) return undefined
  if (typeof age !== 'string' || !/^\d{1,15}$/.test(age)) return undefined
  return { version: version.version, base: base.version, ageMs: Number(age) }
}

const goPath = '/v1/go'

/** Returns the path of a use of a grant. @throws CheckpointError BadManifest for an invalid slot. */
export function formatGo({ slot, epoch, number, uid, atLeast }: GoRequest): string {
  const least = atLeast === undefined ? 'none' : `${formatVersion(atLeast)}@${Math.trunc(atLeast.takenAt)}`
  return `${goPath}/${slotName(slot)}?epoch=${epoch}&number=${number}&uid=${uid}&least=${least}`
}

/** Parses only the output of `formatGo`. */
export function parseGo(path: string): GoRequest | undefined {
  const [, name = '', epoch, number, uid, least = ''] =
    /^\/v1\/go\/([^?/]+)\?epoch=(\d{1,15})&number=(\d{1,15})&uid=([A-Za-z0-9-]{1,64})&least=([^&]{1,64})$/.exec(
      path,
    ) ?? []
  const slot = parseSlotKey(name)
  if (slot === undefined || uid === undefined) return undefined
  const request = { slot, epoch: Number(epoch), number: Number(number), uid }
  if (least === 'none') return request
  const [version, at = ''] = least.split('@')
  const parsed = parseVersion(version)
  if (parsed === 'malformed' || parsed.version === undefined || !/^\d{1,15}$/.test(at)) return undefined
  return { ...request, atLeast: { ...parsed.version, takenAt: Number(at) } }
}

/** The status of each answer to a use of a grant. */
const goStatus = { Accepted: 200, Refused: 409, Later: 425 } as const satisfies Record<GoAnswer, number>

export const statusOfGo = (answer: GoAnswer): number => goStatus[answer]

export const goAnswerOf = (status: number): GoAnswer | undefined =>
  (['Accepted', 'Refused', 'Later'] as const).find(answer => goStatus[answer] === status)
