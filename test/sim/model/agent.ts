/** The agent of one machine: all real code that decides and acts, over a driver and a sentinel of the model. */
import { createReportWriter } from '../../../src/agent/report.ts'
import type { SlotReport } from '../../../src/api/node-report.ts'
import { silentLog as log } from '../../../src/kube/log.ts'
import { createCaches } from './agent-caches.ts'
import { createModelCore } from './agent-core.ts'
import type { AgentOptions } from './agent-options.ts'
import { createTools } from './agent-tools.ts'
import { deathOf } from './sentinel.ts'

const startMs = 1_000
const recallMs = 2_000
const canaryMs = 2_000

export async function runModelAgent(options: AgentOptions): Promise<void> {
  const { machine, party, api, time, random, signal } = options
  const clock = time.clockOf(party)
  // An agent does not know its copies before it has looked; until then the report keeps the previous agent's content.
  const node: { slots: readonly SlotReport[] | undefined; able: boolean } = { slots: undefined, able: false }
  const report = createReportWriter({ api, node: machine.name, clock, log })
  const publish = () =>
    report.update({
      ...{ version: '1', address: machine.address, fingerprint: machine.fingerprint, kernel: '6', criu: '4' },
      ...{ architecture: 'x86_64', cpuFeatures: [] },
      checks: [{ name: 'canary', ok: node.able, message: '' }],
      ready: node.able,
      slots: node.slots,
    })
  const { stores, reflectors } = createCaches(options)
  publish()
  const running = [...reflectors.map(reflector => reflector.run(signal)), report.run(signal)]
  await Promise.all(reflectors.map(reflector => reflector.synced(signal)))

  // Time to install programs, connect to the sentinel, and read the copies on this node.
  await clock.sleep(random.next() * startMs, signal)
  const tools = createTools(options, stores.leases, () => engine.changed())
  const { engine, deaths } = createModelCore(options, tools, {
    stores,
    isAble: () => node.able,
    report: slots => {
      node.slots = slots
      publish()
    },
  })
  for (const each of Object.values(stores)) each.subscribe(engine.changed)
  deaths.recall(await tools.sentinel.watches(signal))
  machine.listener = watch => time.after(party, 0, () => engine.onDeath(deathOf(time, watch)))
  for (const watch of machine.watches.values()) if (watch.diedAt !== undefined) machine.listener(watch)
  engine.begin(signal)
  // Time to restore the state that outlived the boot from the disk; deaths are reported meanwhile.
  await clock.sleep(random.next() * recallMs, signal)
  time.after(party, canaryMs + random.next() * 3_000, () => {
    node.able = true
    publish()
    engine.changed()
  })
  await Promise.all([engine.run(signal), ...running])
}
