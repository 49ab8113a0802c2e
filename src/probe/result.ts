/** The result of a probe. */
export type ProbeResult =
  | { readonly outcome: 'success' }
  /** The app answered wrongly, or not in time; `message` is for people. */
  | { readonly outcome: 'failure'; readonly message: string }
  /** The agent cannot run this kind of probe, so nothing is known. */
  | { readonly outcome: 'unsupported'; readonly message: string }

export const success: ProbeResult = Object.freeze({ outcome: 'success' })

export const failure = (message: string): ProbeResult => ({ outcome: 'failure', message })
