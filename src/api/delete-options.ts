import { type JobDeleteOptions, jobLimits } from './pod-migration-job.ts'
import type { Reader } from './reader.ts'
import { isSet } from './unknown.ts'

/** Reads the options of a deletion, of a job or of the configuration. */
export function deleteOptionsIn(read: Reader, name: string, value: unknown): JobDeleteOptions {
  const given = read.object(name, value)
  const conditions = read.object(`${name}.preconditions`, given['preconditions'])
  read.only(name, given, ['apiVersion', 'kind', 'gracePeriodSeconds', 'preconditions'])
  read.only(`${name}.preconditions`, conditions, ['uid', 'resourceVersion'])
  const text = (key: string) =>
    read.text(`${name}.preconditions.${key}`, conditions[key], { min: 1, max: 64 }, '')
  const uid = text('uid')
  const resourceVersion = text('resourceVersion')
  const seconds = given['gracePeriodSeconds']
  return {
    ...(isSet(seconds) && {
      gracePeriodSeconds: read.integer(`${name}.gracePeriodSeconds`, seconds, jobLimits.gracePeriod, 30),
    }),
    ...((uid || resourceVersion) && {
      preconditions: { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) },
    }),
  }
}
