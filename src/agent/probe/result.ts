/** What a probe found. */
export type ProbeResult =
  | { readonly outcome: 'success' }
  /** It answered wrongly, or not in time; `message` says what, for people. */
  | { readonly outcome: 'failure'; readonly message: string }
  /** This kind of probe is not for the agent to run: nothing is known. */
  | { readonly outcome: 'unsupported'; readonly message: string }

export const success: ProbeResult = Object.freeze({ outcome: 'success' })

export const failure = (message: string): ProbeResult => ({ outcome: 'failure', message })
