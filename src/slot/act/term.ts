/** One time for which this process leads. */
export interface Term {
  /** Fires when the process stops leading: running work of the term ends. */
  readonly leads: AbortSignal
  /** Fires later, when what the term has brought about is written, as far as possible. */
  readonly lasts: AbortSignal
}

export interface Terms {
  /** The present term, or the last one. Before the first term, a term that has not ended. */
  current(): Term
  /** Starts a term. */
  begin(): { readonly stopLeading: () => void; readonly end: () => void }
}

export function createTerms(): Terms {
  const start = () => ({ leads: new AbortController(), lasts: new AbortController() })
  const termOf = ({ leads, lasts }: ReturnType<typeof start>): Term => ({
    leads: leads.signal,
    lasts: lasts.signal,
  })
  let current = termOf(start())
  return {
    current: () => current,
    begin() {
      const started = start()
      current = termOf(started)
      return {
        stopLeading: () => started.leads.abort(new Error('this process stopped leading')),
        end: () => started.lasts.abort(new Error('the term has ended')),
      }
    },
  }
}

/**
 * Returns a function for the state of the present term. State of an earlier term is dropped: another process may have
 * led since.
 */
export function perTerm<T>({ current }: Pick<Terms, 'current'>, create: (term: Term) => T): () => T {
  let last: { readonly term: Term; readonly state: T } | undefined
  return () => {
    const term = current()
    if (last?.term !== term) last = { term, state: create(term) }
    return last.state
  }
}
