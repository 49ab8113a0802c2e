import { isKubeError, messageOf } from '../../kube/errors.ts'
import { isUnknownKind } from '../failure.ts'
import { type Area, about, type Finding } from './finding.ts'

/** The finding for something that could not be read. */
export function unreadable(area: Area, what: string, error: unknown): Finding {
  if (isKubeError(error, 'Forbidden')) return about(area).unknown(what, 'not checked: you may not read it')
  return about(area).unknown(what, `not checked: ${messageOf(error)}`)
}

/** As `unreadable`; empty if the cluster does not have the kind, which is a finding of its own. */
export const unreadableKind = (area: Area, what: string, error: unknown): readonly Finding[] =>
  isUnknownKind(error) ? [] : [unreadable(area, what, error)]
