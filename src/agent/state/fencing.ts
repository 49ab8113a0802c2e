/** The promises and statements of this node's sentinel, as far as this agent knows them: see docs/adr/0128-fencing.md. */
import type { Fence } from '../../api/fence.ts'
import type { FenceView, Guarded } from '../observe/snapshot.ts'
import type { VotingNews } from '../sentinel/client.ts'

export interface Fencing {
  /** Always the same object; it shows the present. */
  readonly view: FenceView
  /**
   * The sentinel listens for heartbeats in this run; undefined: it does not. A sentinel in another run has made no
   * promises.
   */
  listens(run: string | undefined): void
  /** Handles news of the sentinel. */
  onNews(news: VotingNews): void
  /** The sentinel has acknowledged the voters of a slot whose primary is this pod. */
  acknowledged(uid: string, slot: string, fence: Pick<Fence, 'term' | 'version'>): void
  /** The pod serves without voters. */
  unguarded(uid: string): void
  isFenced(uid: string): boolean
  peer(node: string, isOne: boolean): void
  votes(slot: string, does: boolean): void
  /** Forgets statements about other slots. */
  keepOnly(slots: ReadonlySet<string>): void
}

export interface FencingOptions {
  /** Called when anything has changed. */
  readonly changed: () => void
  /** Called when a primary was stopped because too few of its voters answer, or runs again. */
  readonly onFenced: (uid: string, isFenced: boolean) => void
}

export function createFencing({ changed, onFenced }: FencingOptions): Fencing {
  let run: string | undefined
  const peers = new Set<string>()
  const guarded = new Map<string, Guarded>()
  const fenced = new Set<string>()
  const votes = new Set<string>()
  const silent = new Map<string, number>()
  const suspects = new Map<string, number>()

  const setFenced = (uid: string, isFenced: boolean) => {
    if (fenced.has(uid) === isFenced) return
    if (isFenced) fenced.add(uid)
    else fenced.delete(uid)
    onFenced(uid, isFenced)
  }
  /** An earlier agent may have asked the sentinel to guard it. */
  const isGuarded = (uid: string, term: number) => {
    if (guarded.get(uid)?.term !== term) guarded.set(uid, { term })
  }

  return {
    view: {
      get run() {
        return run
      },
      ...{ peers, guarded, fenced, votes, silent, suspects },
    },
    listens(now) {
      if (run === now) return
      if (run !== undefined) {
        for (const uid of fenced) setFenced(uid, false)
        for (const each of [peers, guarded, votes, silent, suspects]) each.clear()
      }
      run = now
      changed()
    },
    onNews(news) {
      const { type, term } = news
      switch (type) {
        case 'silent':
          silent.set(news.slot, Math.max(term, silent.get(news.slot) ?? 0))
          suspects.delete(news.slot)
          votes.add(news.slot)
          break
        case 'suspect':
          suspects.set(news.slot, term)
          break
        case 'trust':
          suspects.delete(news.slot)
          break
        case 'alone':
          // It may be about a term that the sentinel has not acknowledged yet.
          return
        case 'serves':
        case 'stops':
          isGuarded(news.name, term)
          setFenced(news.name, type === 'stops')
      }
      changed()
    },
    acknowledged(uid, slot, { term, version }) {
      guarded.set(uid, { term, acknowledged: { slot, version } })
      changed()
    },
    unguarded(uid) {
      setFenced(uid, false)
      if (guarded.delete(uid)) changed()
    },
    isFenced: uid => fenced.has(uid),
    peer(node, isOne) {
      if (isOne) peers.add(node)
      else peers.delete(node)
      changed()
    },
    votes(slot, does) {
      if (does) votes.add(slot)
      else for (const each of [votes, suspects]) each.delete(slot)
      changed()
    },
    keepOnly(slots) {
      for (const known of [silent, suspects])
        for (const slot of [...known.keys()]) if (!slots.has(slot)) known.delete(slot)
    },
  }
}
