/** SleepLost: a primary is ended for a suspension although it runs, or although no other machine has its last memory. */
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import { keyOf } from '../../../../src/kube/object.ts'
import { type Ground, onLeases } from './ground.ts'
import type { SavedGenesis } from './impostor-saved.ts'

/** A node that is cut off for longer is lost, ms. */
const longCutMs = 25_000

export function sleepLost({ cluster, ...ground }: Ground, saved: SavedGenesis): void {
  const { violate, health, fates } = ground
  onLeases({ cluster, ...ground }, ({ object, before, lease, isOfSet }) => {
    const { holder, ending } = lease
    if (!isOfSet || !lease.suspended || ending !== holder.uid || before?.ending === ending) return
    const node = cluster.nodes.find(({ machine }) => machine.pods.has(holder.uid))
    const app = node?.machine.pods.get(holder.uid)?.containers.find(({ name }) => name === 'app')?.app
    // The app there may be a fresh one, started in place of a dead one.
    if (node === undefined || app === undefined || !node.machine.up) return
    if (app.memory.genesis !== saved.get(`${slotName(lease)} app`)) return
    if (fates.isBroken(holder.uid) || health.cutForMs(node) > longCutMs) return
    const key = `${keyOf(object)} ${lease.epoch}`
    if (app.runsSince !== undefined)
      return violate('SleepLost', key, `${holder.name} is ended for a suspension while it runs`)
    const others = cluster.nodes.filter(({ machine }) => machine !== node.machine)
    const isElsewhere = others.some(({ machine }) =>
      [...machine.images.values()].some(image => {
        const { genesis, until = 0 } = image.get('app') ?? {}
        return genesis === app.memory.genesis && until >= app.memory.until
      }),
    )
    // A holder may have lost its power after its word; the node that saved the memory keeps it as well.
    const hasJustEnded = others.some(
      other => !other.machine.up && lease.holders.includes(other.machine.name) && health.mayBeHeard(other),
    )
    if (!isElsewhere && !hasJustEnded)
      violate('SleepLost', key, `no other machine has the last memory of ${holder.name}, which is suspended`)
  })
}
