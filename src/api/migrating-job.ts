/** A Job of Kubernetes whose pod moves with its memory: `spec.managedBy` gives it to the operator. */
import type { Job } from '../kube/resources.ts'
import { limits } from './backuppodset.ts'
import { prefix } from './labels.ts'

/** The value of `spec.managedBy`: the Job controller of Kubernetes leaves such Jobs alone. */
export const jobManager = `${prefix}migrating-pod`

/** On a Job: `checkpoint.interval` of its MigratingPod. */
export const jobIntervalAnnotation = `${prefix}interval`

/** On the MigratingPod of a Job: hash of the spec that the operator wrote last. */
export const jobSpecAnnotation = `${prefix}job-spec`

/** The condition of a Job that repeats the condition Ready of its MigratingPod. */
export const jobPodReady = `${prefix}PodReady`

export const isManagedJob = ({ spec }: Job): boolean => spec?.managedBy === jobManager

/** The only table of what a Job with this manager may not have: the policy `understudy-migrating-jobs` has the same rules in CEL. */
export const jobRefusals = Object.freeze({
  NameTooLong: `choose a name of at most ${limits.name} characters: names of pods add to it`,
  ParallelismNotOne: 'set parallelism to 1 or remove it: one pod at a time has the memory',
  CompletionsNotOne: 'set completions to 1 or remove it: one end with success completes the Job',
  Indexed: 'remove completionMode Indexed: the Job has one pod',
  PodFailurePolicy:
    'remove podFailurePolicy: a pod that fails is continued from the last saved state, up to backoffLimit times',
  SuccessPolicy: 'remove successPolicy: one end with success completes the Job',
  ContainersNotOne: 'leave one container in the template: the Job is done when it ends with success',
})

export type JobRefusal = keyof typeof jobRefusals

/** Returns the first rule that the Job breaks. */
export function brokenJobRule({ metadata, spec }: Job): JobRefusal | undefined {
  const rules: readonly (readonly [JobRefusal, boolean])[] = [
    ['NameTooLong', metadata.name.length > limits.name],
    ['ParallelismNotOne', (spec?.parallelism ?? 1) !== 1],
    ['CompletionsNotOne', (spec?.completions ?? 1) !== 1],
    ['Indexed', spec?.completionMode === 'Indexed'],
    ['PodFailurePolicy', spec?.podFailurePolicy !== undefined],
    ['SuccessPolicy', spec?.successPolicy !== undefined],
    ['ContainersNotOne', spec?.template.spec?.containers.length !== 1],
  ]
  return rules.find(([, isBroken]) => isBroken)?.[0]
}
