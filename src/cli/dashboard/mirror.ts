import { elapses } from '../../kube/clock.ts'
import { isKubeError, messageOf } from '../../kube/errors.ts'
import type { Log } from '../../kube/log.ts'
import type { KubeObject } from '../../kube/object.ts'
import { createReflector } from '../../kube/reflector.ts'
import type { Resource } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { readRights, rightText } from '../doctor/rights.ts'
import { isUnknownKind } from '../failure.ts'
import type { Session } from '../session.ts'
import type { MissingRight } from './wire.ts'

/** The objects that a mirror keeps. */
export interface Mirrored<O extends KubeObject> {
  readonly resource: Resource<O>
  /** Absent: all, or the kind has none. */
  readonly namespace?: string | undefined
  readonly labelSelector?: string
  readonly transform?: (object: O) => O
  /** The part of the page that it fills. */
  readonly shows: string
}

export interface Mirror<O extends KubeObject> {
  /** Undefined: the user may not read them, or the cluster does not have the kind. */
  objects(): readonly O[] | undefined
  /** They have been read once, or cannot be. */
  isFilled(): boolean
  missing(): readonly MissingRight[]
  /** Why the objects may be old. A missing right is none: then there are no objects. */
  problem(): string | undefined
  /** Resolves with a fresh snapshot in place. @throws the signal's reason */
  refresh(signal: AbortSignal): Promise<void>
  /** Mirrors until the session ends. */
  run(): Promise<void>
}

/** How often to ask whether the user has got a missing right, ms. */
const askEveryMs = 10_000
/** Bookmarks come about every minute: a watch without them is dead. */
const idleTimeoutMs = 75_000
const verbs = ['list', 'watch'] as const

export function createMirror<O extends KubeObject>(
  session: Session,
  { resource, namespace, labelSelector, transform, shows }: Mirrored<O>,
  changed: () => void,
): Mirror<O> {
  const { api, clock, random, signal } = session
  const store = createStore<O>()
  let state: 'asking' | 'refused' | 'absent' | 'mirrored' = 'asking'
  let missing: readonly MissingRight[] = []
  let askingFails: string | undefined
  const become = (next: typeof state, lacking: readonly MissingRight[] = []) => {
    if (state === next && missing.length === lacking.length) return
    state = next
    missing = lacking
    changed()
  }
  const rights = verbs.map(verb => ({ verb, group: resource.group, resource: resource.plural, namespace }))
  const ask = async () => {
    const answers = await readRights(session, rights)
    const lacking = answers.filter(({ allowed }) => !allowed)
    return lacking.map(right => ({ right: rightText(right), shows }))
  }
  const fail = async (error: unknown) => {
    if (isUnknownKind(error)) become('absent')
    // The right may have been taken away since, and the answer names only one of the verbs.
    else if (isKubeError(error, 'Forbidden')) become('refused', await ask().catch(() => missing))
  }
  const log: Log = {
    debug() {},
    info() {},
    warn: fields => void fail(fields['err']),
    error() {},
  }
  const reflector = createReflector({
    ...{ api, resource, store, clock, random, log, idleTimeoutMs },
    query: { namespace, labelSelector },
    ...(transform === undefined ? {} : { transform }),
  })
  store.subscribe(changed)
  // Any word of the server means that it lets the user read again.
  store.onAdvance(() => become('mirrored'))
  return {
    objects: () => (state === 'mirrored' ? store.list() : undefined),
    isFilled: () => state !== 'asking',
    missing: () => missing,
    problem: () => {
      if (state === 'refused' || state === 'absent') return undefined
      return state === 'asking' ? askingFails : reflector.problem()
    },
    async refresh(limit) {
      if (state === 'mirrored') await reflector.refresh(limit)
    },
    async run() {
      do {
        try {
          const lacking = await ask()
          askingFails = undefined
          if (lacking.length === 0) break
          become('refused', lacking)
        } catch (error) {
          askingFails = messageOf(error)
        }
      } while (await elapses(clock, askingFails === undefined ? askEveryMs : 1_000, signal))
      if (!signal.aborted) await reflector.run(signal)
    },
  }
}
