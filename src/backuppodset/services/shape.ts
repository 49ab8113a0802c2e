import type { ParsedSet } from '../../api/parse.ts'
import { slotLeaseName } from '../../api/slot-lease.ts'
import type { ServicePort } from './view.ts'

/** The most endpoints that a slice may have; also how many slot numbers share one. */
export const slotsPerSlice = 1_000

export interface WantedService {
  readonly name: string
  /** Of the one slot that it leads to; undefined: all of them. */
  readonly slot: number | undefined
  readonly ports: readonly ServicePort[]
}

/** The Services of a set that has these slots. */
export function wantedServices(
  { name, service }: Pick<ParsedSet, 'name' | 'service'>,
  slots: Iterable<number>,
): readonly WantedService[] {
  if (service === undefined) return []
  const ports: readonly ServicePort[] = service.ports
  const perSlot = service.perSlot ? [...new Set(slots)].sort((a, b) => a - b) : []
  return [
    ...(service.name === undefined ? [] : [{ name: service.name, slot: undefined, ports }]),
    ...perSlot.map(slot => ({ name: slotLeaseName(name, slot), slot, ports })),
  ]
}

export const familyOf = (ip: string): 'IPv4' | 'IPv6' => (ip.includes(':') ? 'IPv6' : 'IPv4')

/** A slice belongs to a Service, an address family and a range of slot numbers: a slot never moves to another one. */
export const sliceName = (service: string, slot: number, family: 'IPv4' | 'IPv6'): string =>
  `${service}-understudy-${Math.floor(slot / slotsPerSlice)}${family === 'IPv6' ? '-v6' : ''}`
