/** Services of a set and their endpoints, as far as the rules need them. */

export interface ServicePort {
  readonly name: string | undefined
  readonly port: number
  readonly targetPort: number
  readonly protocol: string
}

export interface Endpoint {
  readonly slot: number
  readonly ip: string
  readonly pod: string
  readonly uid: string
  readonly node: string | undefined
}

export interface SliceView {
  readonly name: string
  /** The Service it belongs to. */
  readonly service: string
  readonly resourceVersion: string
  readonly family: 'IPv4' | 'IPv6'
  readonly endpoints: readonly Endpoint[]
  readonly ports: readonly Omit<ServicePort, 'port'>[]
}

export interface ServiceView {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly type: string
  readonly ports: readonly ServicePort[]
}

/** The Services and slices that the set owns. */
export interface ServicesView {
  readonly services: readonly ServiceView[]
  readonly slices: readonly SliceView[]
  /** Addresses of the set's pods, by uid. */
  readonly addresses: ReadonlyMap<string, string>
}
