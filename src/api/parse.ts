import {
  type BackupPodSet,
  type PodTemplate,
  type Strategy,
  type StrategyKey,
  strategies,
  strategyKeys,
} from './backuppodset.ts'
import { type Refusal, refusals } from './errors.ts'
import { labels, prefix } from './labels.ts'

/** A set whose every field is there and valid: what comes after `parseSet` checks nothing again. */
export interface ParsedSet {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly generation: number
  readonly replicas: number
  readonly hotBackups: number
  readonly coldBackups: number
  readonly strategy: Readonly<Record<StrategyKey, Strategy>>
  readonly schedulerName: string
  /** Seconds. */
  readonly wakeupTimeout: number
  readonly gatePosition: 'First' | 'Last'
  readonly paused: boolean
  readonly antiAffinity: 'Preferred' | 'Required' | 'None'
  readonly updateStrategy: 'RollingUpdate' | 'OnDelete'
  readonly failover: { readonly unreadySeconds: number; readonly crashLoop: 'Replace' | 'Ignore' }
  readonly template: PodTemplate & { readonly spec: NonNullable<PodTemplate['spec']> }
}

export type Parsed = { readonly ok: true; readonly set: ParsedSet } | ({ readonly ok: false } & Refusal)

/**
 * Parses a set as the API server stores it. The schema and its rules have checked it already, so a refusal means an
 * object that was stored under an older CRD, or without one of its rules.
 */
export function parseSet(object: BackupPodSet): Parsed {
  const { metadata, spec } = object
  const { template } = spec
  const refuse = (refusal: Refusal): Parsed => ({ ok: false, ...refusal })
  if (metadata.name.length > 50) return refuse(refusals.nameTooLong(metadata.name))
  if (template?.spec === undefined || (template.spec.containers ?? []).length === 0)
    return refuse(refusals.templateEmpty())
  if ((template.spec.restartPolicy ?? 'Always') !== 'Always')
    return refuse(refusals.restartPolicy(template.spec.restartPolicy ?? ''))
  const reserved = Object.keys(template.metadata?.labels ?? {}).find(
    label => label === labels.type || label.startsWith(prefix),
  )
  if (reserved !== undefined) return refuse(refusals.reservedLabel(reserved))
  const strategy: Partial<Record<StrategyKey, Strategy>> = {}
  for (const key of strategyKeys) {
    const value = spec.strategy?.[key] ?? 'random'
    if (!strategies.includes(value)) return refuse(refusals.unknownStrategy(key, value))
    strategy[key] = value
  }
  return {
    ok: true,
    set: {
      name: metadata.name,
      namespace: metadata.namespace ?? '',
      uid: metadata.uid,
      generation: metadata.generation ?? 0,
      replicas: count(spec.replicas, 1),
      hotBackups: count(spec.hotBackups, 0),
      coldBackups: count(spec.coldBackups, 0),
      strategy: strategy as Record<StrategyKey, Strategy>,
      schedulerName: spec.schedulerName ?? 'default-scheduler',
      wakeupTimeout: spec.wakeupTimeout ?? 5,
      gatePosition: spec.gatePosition ?? 'First',
      paused: spec.paused ?? false,
      antiAffinity: spec.antiAffinity ?? 'Preferred',
      updateStrategy: spec.updateStrategy?.type ?? 'RollingUpdate',
      failover: {
        unreadySeconds: spec.failover?.unreadySeconds ?? 30,
        crashLoop: spec.failover?.crashLoop ?? 'Replace',
      },
      template: { ...template, spec: template.spec },
    },
  }
}

const count = (value: number | undefined, otherwise: number): number => Math.max(0, value ?? otherwise)
