/** Which primaries the sentinels had to stop, and for how long: by their own logs. */
import { type Fenced, now } from './history.ts'
import { type Stage, targetNodes } from './stage.ts'

/** The sentinel has an older file beside its log once that is full. */
const read = 'cat /run/understudy/sentinel.log.1 /run/understudy/sentinel.log 2>/dev/null; true'

/** @param since Unix ms */
export async function fencedSince(stage: Stage, since: number): Promise<Fenced[]> {
  const { cluster } = stage
  const texts = await Promise.all(
    // A node without power has no log.
    targetNodes(stage).map(node => cluster.inNode(node, ['sh', '-c', read]).catch(() => '')),
  )
  return texts.flatMap(text => fencedIn(text, since, now() - Date.now()))
}

/** @param offset from Unix ms to the times of a history */
export function fencedIn(log: string, since: number, offset: number): Fenced[] {
  return log.split('\n').flatMap(line => {
    const { time, msg, name, ms } = parse(line)
    if (msg !== 'a primary runs again' || typeof name !== 'string') return []
    if (typeof time !== 'number' || typeof ms !== 'number' || time < since) return []
    return [{ type: 'fenced' as const, at: time - ms + offset, uid: name, ms }]
  })
}

/** A line that its writer did not finish says nothing. */
function parse(line: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(line) as Readonly<Record<string, unknown>>
  } catch {
    return {}
  }
}
