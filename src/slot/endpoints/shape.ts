import type { ParsedService } from '../../api/memory.ts'
import { slotLeaseName } from '../../api/numbered-slot.ts'
import type { ServicePort } from '../decide/endpoints-view.ts'

/** Maximum of endpoints in a slice; also how many slot numbers share one. */
export const slotsPerSlice = 1_000

export interface WantedService {
  readonly name: string
  /** The slot that it leads to; undefined: all slots. */
  readonly slot: number | undefined
  readonly type: ParsedService['type']
  readonly ports: readonly ServicePort[]
}

/** Returns the Services that a set with these slots should have. */
export function wantedServices(
  { name, service }: { readonly name: string; readonly service: ParsedService | undefined },
  slots: Iterable<number>,
): readonly WantedService[] {
  if (service === undefined) return []
  const { type, ports }: Pick<WantedService, 'type' | 'ports'> = service
  const perSlot = service.perSlot ? [...new Set(slots)].sort((a, b) => a - b) : []
  return [
    ...(service.name === undefined ? [] : [{ name: service.name, slot: undefined, type, ports }]),
    ...perSlot.map(slot => ({ name: slotLeaseName(name, slot), slot, type, ports })),
  ]
}

export const familyOf = (ip: string): 'IPv4' | 'IPv6' => (ip.includes(':') ? 'IPv6' : 'IPv4')

/** A slice is for one Service, address family and range of slot numbers: a slot never moves to another slice. */
export const sliceName = (service: string, slot: number, family: 'IPv4' | 'IPv6'): string =>
  `${service}-understudy-${Math.floor(slot / slotsPerSlice)}${family === 'IPv6' ? '-v6' : ''}`
