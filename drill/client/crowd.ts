/** All clients of a drill: of each slot's Service, and of each pod that is or was a primary. */
import { statSync } from 'node:fs'
import type { Entry } from '../history.ts'
import { port, type Stage, targetNodes } from '../stage.ts'
import { type Clients, startClients } from './clients.ts'
import type { Target } from './target.ts'

export interface Crowd {
  /** Follows the primaries. Cheap if nothing has changed. */
  follow(): void
  stop(): Promise<void>
}

const everyMs = { fresh: 50, kept: 50, direct: 100 } as const
/** Number of pods of a slot that `direct` clients ask, the latest first. Earlier ones are gone for long. */
const formerPods = 4

/** A node that lost its power has another network afterwards. */
const networkOf = ({ cluster }: Pick<Stage, 'cluster'>, node: string): number | undefined => {
  const label = cluster.plan.nodes.find(({ name }) => name === node)?.label
  return statSync(`/run/netns/${label}`, { throwIfNoEntry: false })?.ino
}

interface Place {
  readonly clients: Clients
  readonly network: number
}

interface Seen {
  readonly slot: number
  readonly uid: string
  readonly host: string
  readonly node: string
}

export function gather(
  stage: Stage,
  serviceAddresses: ReadonlyMap<number, string>,
  tell: (entry: Entry) => void,
): Crowd {
  const places = new Map<string, Place>()
  const last = new Map<string, string>()
  let started = 0
  let seen: Seen[] = []
  const ended: Promise<void>[] = []
  const ask = (node: string, targets: readonly Target[]) => {
    const network = networkOf(stage, node)
    let place = places.get(node)
    if (network === undefined) return
    if (place === undefined || place.network !== network) {
      if (place !== undefined) ended.push(place.clients.stop())
      started += 1
      place = { clients: startClients(stage.cluster, node, `${node}-${started}-`, tell), network }
      places.set(node, place)
      last.delete(node)
    }
    const text = JSON.stringify(targets)
    if (last.get(node) === text) return
    last.set(node, text)
    place.clients.ask(targets)
  }
  return {
    follow() {
      seen = withPrimaries(stage, seen)
      ask(
        stage.clientNode,
        [...serviceAddresses].flatMap(([slot, host]) =>
          (['fresh', 'kept'] as const).map(client => ({
            client,
            slot,
            host,
            port,
            everyMs: everyMs[client],
          })),
        ),
      )
      for (const node of targetNodes(stage))
        ask(
          node,
          seen
            .filter(each => each.node === node)
            .map(({ slot, host }) => ({ client: 'direct', slot, host, port, everyMs: everyMs.direct })),
        )
    },
    async stop() {
      await Promise.all([...ended, ...[...places.values()].map(({ clients }) => clients.stop())])
    },
  }
}

/** Adds the primaries of now, and forgets the oldest. */
function withPrimaries({ recorder }: Stage, seen: readonly Seen[]): Seen[] {
  const now = [...recorder.slots.values()].flatMap(({ slot, holder: { uid } }): Seen[] => {
    const pod = recorder.pods.get(uid)
    const host = pod?.status?.podIP
    const node = pod?.spec?.nodeName
    return host === undefined || node === undefined ? [] : [{ slot, uid, host, node }]
  })
  const all = [...now, ...seen.filter(each => now.every(({ uid }) => uid !== each.uid))]
  return all.filter(
    (each, index) => all.slice(0, index).filter(({ slot }) => slot === each.slot).length < formerPods,
  )
}
