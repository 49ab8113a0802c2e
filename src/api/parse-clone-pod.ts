import { type ClonePod, clonePodDefaults, clonePodLimits } from './clone-pod.ts'
import type { Refusal } from './errors.ts'
import { reader } from './reader.ts'
import { isSet } from './unknown.ts'

export interface ParsedClonePod {
  readonly source: { readonly name: string; readonly uid: string | undefined }
  /** Name of the MigratingPod. */
  readonly target: string
  readonly timeoutMs: number
  readonly ttlMs: number
}

export type ParsedClone =
  | { readonly ok: true; readonly wish: ParsedClonePod }
  | ({ readonly ok: false } & Refusal)

/** Parses the spec of a ClonePod. Never throws: it may have been stored under another schema. */
export function parseClonePod({ metadata, spec: given }: Pick<ClonePod, 'metadata' | 'spec'>): ParsedClone {
  const refused: Refusal[] = []
  const read = reader(refused)
  const spec = read.object('spec', given)
  const source = read.object('spec.source', spec['source'])
  const target = read.object('spec.target', spec['target'])
  const name = read.text('spec.source.name', source['name'], { min: 1, max: 253 }, '')
  if (!isSet(source['name'])) read.invalid('spec.source.name', undefined, 'the name of the pod to copy')
  const uid = read.text('spec.source.uid', source['uid'], { min: 1, max: 64 }, '')
  const goal = read.text('spec.target.name', target['name'], clonePodLimits.name, metadata.name)
  if (goal.length > clonePodLimits.name.max)
    read.invalid(
      'metadata.name',
      goal,
      `at most ${clonePodLimits.name.max} characters, or a spec.target.name`,
    )
  const seconds = (
    key: 'timeoutSeconds' | 'ttlSecondsAfterFinished',
    bounds: { readonly min: number; readonly max: number },
  ) => read.integer(`spec.${key}`, spec[key], bounds, clonePodDefaults[key]) * 1000
  const wish: ParsedClonePod = {
    source: { name, uid: uid || undefined },
    target: goal,
    timeoutMs: seconds('timeoutSeconds', clonePodLimits.timeout),
    ttlMs: seconds('ttlSecondsAfterFinished', clonePodLimits.ttl),
  }
  const [first] = refused
  return first === undefined ? { ok: true, wish } : { ok: false, ...first }
}
