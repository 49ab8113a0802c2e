import { findSet } from '../find-set.ts'
import { answerText, isData } from '../output/answer.ts'
import type { Session } from '../session.ts'
import { painter } from '../terminal.ts'
import { followWorld, readWorld, type World } from '../world.ts'
import { setsFacts } from './facts.ts'
import { type RenderOptions, renderList, renderSet } from './render.ts'

export interface StatusOptions {
  readonly allNamespaces?: boolean
  readonly watch?: boolean
}

/** Minimum time between two pictures, ms: a start of many pods causes many changes. */
const pictureEveryMs = 250

/**
 * Shows all sets, or one set with all its details; with `watch` again after each change until the session ends.
 *
 * @throws CliError, KubeError.
 */
export async function status(
  session: Session,
  name: string | undefined,
  options: StatusOptions,
): Promise<void> {
  const { terminal, signal, output, progress } = session
  const allNamespaces = options.allNamespaces === true && name === undefined
  const scope = { namespace: allNamespaces ? undefined : session.namespace, set: name, moves: true }
  if (name !== undefined) await findSet(session, name)
  if (options.watch !== true) {
    const world = await progress.wait('read sets, pods and nodes', () => readWorld(session, scope))
    terminal.out(picture(session, world, name, allNamespaces))
    return
  }
  try {
    await followWorld(session, scope, async world => {
      let last = ''
      const show = (now: World) => {
        const next = picture(session, now, name, allNamespaces)
        if (next === last) return
        last = next
        // Programs read one document after the other.
        if (isData(output)) terminal.out(next)
        else terminal.redraw(next)
      }
      show(world.now)
      await world.onChange(show, pictureEveryMs)
    })
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

function picture(session: Session, world: World, name: string | undefined, allNamespaces: boolean): string {
  const { output, clock, terminal, namespace } = session
  const facts = setsFacts(world)
  const [only] = facts
  if (isData(output))
    return name === undefined
      ? answerText(output, 'SetStatusList', { items: facts }, () => '')
      : answerText(output, 'SetStatus', only ?? { namespace, name, gone: true }, () => '')
  const options: RenderOptions = {
    wide: output === 'wide',
    allNamespaces,
    now: clock.now(),
    paint: painter(terminal.colour),
  }
  if (name !== undefined)
    return only === undefined ? `${namespace}/${name} is gone` : renderSet(only, options)
  if (facts.length > 0) return renderList(facts, options)
  return allNamespaces
    ? 'no sets in this cluster'
    : `no sets in namespace ${namespace} (-A: in all namespaces)`
}
