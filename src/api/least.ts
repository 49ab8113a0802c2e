/** The generation with which a slot's primary must continue at least, as its Lease has it in two annotations. */
export interface Least {
  readonly epoch: number
  readonly generation: number
  /** Wall clock of its source, ms; 0: unknown, as in Leases of earlier versions. */
  readonly takenAt: number
}

/** Undefined: absent, or unreadable. */
export function parseLeast(text = '', takenAt = ''): Least | undefined {
  const [, epoch, generation] = /^(\d{1,15})\.(\d{1,15})$/.exec(text) ?? []
  return epoch === undefined
    ? undefined
    : { epoch: Number(epoch), generation: Number(generation), takenAt: Date.parse(takenAt) || 0 }
}
