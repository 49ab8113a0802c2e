import { silent } from '../../terminal/progress.ts'
import { drillSet, drillText } from '../drill/drill.ts'
import { CliError, explain } from '../failure.ts'
import type { Session } from '../session.ts'
import type { PageAssets } from './assets.ts'
import { createFeed } from './feed.ts'
import { createMirrors } from './mirrors.ts'
import { plain } from './picture.ts'
import { type DashboardServer, serve } from './server.ts'
import type { DrillAnswer, DrillRequest, Head } from './wire.ts'

export interface DashboardOptions {
  readonly allNamespaces?: boolean
  /** 0: any that is free. */
  readonly port: number
}

/** Seconds that a successor may take in a drill. */
const drillTimeout = 60

/**
 * Serves the page until the session ends. It sees and does what the user may, and adds nothing to the cluster.
 *
 * @throws CliError if the port is taken, or if this program has no page
 */
export async function dashboard(
  session: Session,
  options: DashboardOptions,
  assets: PageAssets | undefined,
): Promise<void> {
  if (assets === undefined)
    throw new CliError('this program was started from its sources, and has no page', {
      advice: 'build it: `npm run cli-build`',
    })
  const { terminal, signal, clock } = session
  const namespace = options.allNamespaces === true ? undefined : session.namespace
  const head = (): Head => {
    const lost = mirrors.lost()
    return plain({
      ...{ server: session.server, version: session.version, now: clock.now() },
      ...(namespace === undefined ? {} : { namespace }),
      ...{ isFilled: mirrors.isFilled(), missing: mirrors.missing() },
      ...(lost === undefined ? {} : { lost }),
    })
  }
  const mirrors = createMirrors(session, namespace, () => feed.changed())
  const feed = createFeed({ world: mirrors.world, head, clock })
  const server = await opened(() =>
    serve({
      ...{ assets, feed, port: options.port, drill: wanted => drillOf(session, namespace, wanted) },
      problem: onlyFirst(error => terminal.err(`the page lost a connection: ${error.message}`)),
    }),
  )
  try {
    terminal.out(server.address)
    terminal.err('open this address in a browser on this machine; Ctrl-C ends the page')
    await Promise.all([mirrors.run(), feed.run(signal)])
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    await server.close()
  }
}

/** Every user of the machine can cause such problems without end. */
function onlyFirst<T>(tell: (it: T) => void): (it: T) => void {
  let isTold = false
  return it => {
    if (!isTold) tell(it)
    isTold = true
  }
}

async function opened(serving: () => Promise<DashboardServer>): Promise<DashboardServer> {
  try {
    return await serving()
  } catch (error) {
    const { code, port } = error as NodeJS.ErrnoException & { readonly port?: number }
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error
    throw new CliError(
      code === 'EACCES' ? `you may not serve on port ${port}` : `another program serves on port ${port}`,
      { advice: 'choose another --port; 0 takes any that is free' },
    )
  }
}

/** The page decides nothing: the set itself has to allow drills, whatever button was pressed. */
async function drillOf(
  session: Session,
  scope: string | undefined,
  { namespace, set, slot }: DrillRequest,
): Promise<DrillAnswer> {
  try {
    if (scope !== undefined && namespace !== scope)
      throw new CliError(`the page shows namespace ${scope} only`)
    const drilled = await drillSet({ ...session, namespace, progress: silent }, set, {
      slot,
      timeout: drillTimeout,
    })
    return { ok: true, text: drillText(drilled) }
  } catch (error) {
    const { message, advice } = explain(error, session.server)
    return plain({ ok: false, text: message, ...(advice === undefined ? {} : { advice }) })
  }
}
