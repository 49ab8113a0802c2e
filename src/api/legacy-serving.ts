/**
 * The version before this one writes the facts behind the condition `serving` into its message, and reads them there. This
 * file can go once no pod on stage is without the annotation.
 */
import type { BroughtBack, ServingRecord } from './pod-contract.ts'

export const legacyMemory = ({ generation, takenAt }: BroughtBack): string =>
  `; generation ${generation} of ${takenAt}`

export const legacyDeath = (slot: string): string => `; it had the memory of ${slot}`

export const legacyContainers = (ids: Readonly<Record<string, string>>): string =>
  Object.entries(ids)
    .map(([name, id]) => `${name} is ${id}`)
    .join(', ')

export function legacyRecord(message: string): ServingRecord {
  const [, generation, takenAt] = /; generation (\d{1,15}) of (\S+)$/u.exec(message) ?? []
  const hasMemory = takenAt !== undefined && !Number.isNaN(Date.parse(takenAt))
  const [, diedWith] = /it had the memory of (\S+)$/u.exec(message) ?? []
  const ids = [...message.matchAll(/(?:^epoch \d+: |, )([a-z0-9-]+) is ([^\s,;]+:\/\/[^\s,;]+)/gu)].map(
    ([, name = '', id = '']) => [name, id] as const,
  )
  return {
    ...(ids.length > 0 && { containers: Object.fromEntries(ids) }),
    ...(hasMemory && { memory: { generation: Number(generation), takenAt } }),
    ...(diedWith !== undefined && { diedWith }),
  }
}
