import { isFinished, type Migration, migrations, outcomeOf } from '../../api/migration.ts'
import { isKubeError } from '../../kube/errors.ts'
import { apiVersionOf } from '../../kube/resources.ts'
import { CliError, exitCodes } from '../failure.ts'
import type { Session } from '../session.ts'

/** How often to look at a Migration, ms. */
const pollMs = 200

/** Time limit of the deletion of a Migration, ms. */
const callOffMs = 5_000

/** A pod to move, and how. */
export interface Move {
  readonly namespace: string
  readonly pod: { readonly name: string; readonly uid?: string }
  /** Beginning of the name of the Migration. */
  readonly prefix: string
  readonly spec: Omit<Migration['spec'], 'source'>
  /** Title of the step that shows it. */
  readonly title: string
}

/**
 * Moves a pod by a Migration, and waits until it has ended. If it does not end in time, or the user interrupts, the Migration is
 * deleted: then the pod stays where it is.
 *
 * @throws CliError with exit code 4 after the Migration was deleted; CliError if it has failed; KubeError.
 */
export async function migrate(session: Session, move: Move, timeoutMs: number): Promise<Migration> {
  const { api, call, clock, progress, signal } = session
  const { namespace } = move
  const end = clock.monotonic() + timeoutMs
  const created = await api.create(
    migrations,
    {
      apiVersion: apiVersionOf(migrations),
      kind: migrations.kind,
      metadata: { namespace, generateName: move.prefix },
      spec: { source: move.pod, ...move.spec },
    },
    { namespace, ...call },
  )
  const { name, uid } = created.metadata
  return progress.step(move.title, async step => {
    // A Migration that has ended stays, because it says why.
    let isOver = false
    try {
      for (;;) {
        const now = await read(session, created)
        const word = outcomeOf(now)
        step.detail([now.status?.phase ?? 'Pending', word?.message].filter(Boolean).join(': '))
        isOver = isFinished(now)
        if (isOver) return ended(now)
        if (clock.monotonic() >= end) throw late(word?.message)
        await clock.sleep(pollMs, signal)
      }
    } catch (error) {
      if (isOver) throw error
      // Not by the signal of the session, which may be why.
      await api
        .delete(migrations, { namespace, name }, { uid }, { timeoutMs: callOffMs })
        .catch((reason: unknown) => {
          if (!isKubeError(reason, 'NotFound', 'Conflict')) throw reason
        })
      throw error
    }
  })
}

/** Objects of a list come without their kind. */
export const withKind = (migration: Migration): Migration & { readonly kind: string } => ({
  ...{ apiVersion: apiVersionOf(migrations), kind: migrations.kind },
  ...migration,
})

async function read({ api, call }: Session, { metadata }: Migration): Promise<Migration> {
  const { namespace, name, uid } = metadata
  const gone = () => new CliError(`Migration ${name} was deleted: the pod stays where it is`)
  const now = await api.get(migrations, { namespace, name }, call).catch((error: unknown) => {
    throw isKubeError(error, 'NotFound') ? gone() : error
  })
  if (now.metadata.uid !== uid) throw gone()
  return now
}

function ended(now: Migration): Migration {
  if (now.status?.phase === 'Succeeded') return now
  const word = outcomeOf(now)
  throw new CliError(`the move has failed: ${word?.reason ?? 'no reason'}: ${word?.message ?? ''}`, {
    advice: 'the pod runs where it was, unless the reason says that it was lost',
  })
}

const late = (why = 'the operator has not seen it'): CliError =>
  new CliError(`the move did not end within --timeout, and was called off: ${why}`, {
    advice: 'nothing is lost: the pod runs where it was, or, if the slot was changing hands, on its new node',
    exitCode: exitCodes.late,
  })
