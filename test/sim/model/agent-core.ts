/** Composes an agent's own code, all that decides and acts, over the tools of the model. */
import { patchCondition } from '../../../src/agent/conditions.ts'
import { createDeaths, lostPagesWhat } from '../../../src/agent/duties/deaths.ts'
import { isKeptElsewhere } from '../../../src/agent/duties/duties-of.ts'
import { createEngine, type Engine } from '../../../src/agent/duties/engine.ts'
import { createHandoverPauses } from '../../../src/agent/duties/handover-pauses.ts'
import { createLazyPages } from '../../../src/agent/duties/lazy-pages.ts'
import { createObserver } from '../../../src/agent/duties/observe.ts'
import { createPaces } from '../../../src/agent/duties/paces.ts'
import { perform } from '../../../src/agent/duties/perform.ts'
import { createProgress } from '../../../src/agent/duties/progress.ts'
import { dropWatch, release } from '../../../src/agent/duties/remains.ts'
import { endGone } from '../../../src/agent/duties/stop-primary.ts'
import type { TaskContext } from '../../../src/agent/duties/task-context.ts'
import { createUnderstudies } from '../../../src/agent/duties/understudies.ts'
import { createKeyedSignal } from '../../../src/agent/keyed-signal.ts'
import type { NodeReport, SlotReport } from '../../../src/api/node-report.ts'
import type { SlotKey } from '../../../src/api/slot-lease.ts'
import { slotName } from '../../../src/checkpoint/manifest.ts'
import type { Lease, Pod } from '../../../src/kube/resources.ts'
import type { Store } from '../../../src/kube/store.ts'
import type { AgentOptions } from './agent-options.ts'
import type { AgentTools } from './agent-tools.ts'

export interface Surroundings {
  readonly stores: {
    readonly pods: Store<Pod>
    readonly leases: Store<Lease>
    readonly reports: Store<NodeReport>
  }
  readonly isAble: () => boolean
  readonly report: (slots: readonly SlotReport[]) => void
}

export function createModelCore(
  options: AgentOptions,
  tools: AgentTools,
  { stores, isAble, report }: Surroundings,
) {
  const { machine, volatile, party, api, time, random } = options
  const { store, metrics, clock, log } = tools
  const changed = () => engine.changed()
  const generations = createKeyedSignal()
  const requests = createKeyedSignal()
  const progress = createProgress(changed)
  const handoverPauses = createHandoverPauses(clock)
  const paces = createPaces()
  const patch: TaskContext['patch'] = (pod, condition, given) =>
    patchCondition({ api, clock }, pod, condition, given)
  const pods = createPodMemory(tools, patch, () => engine, options.signal)
  const { deaths, understudies } = pods
  const announce = (slot: SlotKey) => {
    generations.tell(slotName(slot))
    volatile.news.tell(slotName(slot))
    changed()
  }
  const context: TaskContext = {
    ...{ ...tools, ...pods, ...createSuspensions(), ...viewsOf(() => engine) },
    ...{ progress, handoverPauses, paces, generations, requests, announce },
    patch: async (pod, condition, given) =>
      deaths.mayWrite(pod.uid, condition) ? patch(pod, condition, given) : true,
  }
  const observe = createObserver({
    ...{ node: machine.name, ...stores, store, understudies, handoverPauses },
    proven: machine.proven,
    dead: deaths.dead,
  })
  const engine = createEngine({
    observe: () => observe({ able: isAble(), sentinel: String(machine.boot) }),
    perform: (...about) => perform(context, ...about),
    ...{ deaths, store, progress, paces, report, patch },
    onGone: (uid, given) => endGone(context, uid, given),
    onRequest: requests.tell,
    onTrouble: () => undefined,
    leases: stores.leases.list,
    sweepPods: async () => undefined,
    ...{ metrics, clock, random, log },
    defer: run => time.after(party, 0, run),
  })
  return { engine, deaths }
}

/** The parts that live as long as a pod of this machine. */
function createPodMemory(
  { driver, sentinel, store, clock, log }: AgentTools,
  patch: TaskContext['patch'],
  engine: () => Engine,
  signal: AbortSignal,
) {
  const changed = () => engine().changed()
  const lazyPages = createLazyPages({
    ...{ driver, store, clock, log },
    metrics: { arrived: () => undefined },
    onLost: (uid, container) => {
      const pod = engine().podOf(uid)
      if (pod !== undefined && engine().matters(pod)) void deaths.declare(pod, container, lostPagesWhat)
    },
  })
  const deaths = createDeaths({
    podOf: uid => engine().podOf(uid),
    slotOf: pod => engine().slotOf(pod),
    holds: pod => engine().slotHeldBy(pod.uid) !== undefined,
    matters: pod => engine().matters(pod),
    patch,
    unwatch: name => void dropWatch(sentinel, name, signal).catch(() => undefined),
    release: uid => void release(sentinel, uid, signal).catch(() => undefined),
    changed,
    lostPages: lazyPages.wasLost,
    ...{ clock, log },
  })
  return { lazyPages, deaths, understudies: createUnderstudies(driver, changed, lazyPages.note) }
}

/** The questions of tasks about the present. */
const viewsOf = (
  engine: () => Engine,
): Pick<TaskContext, 'podOf' | 'isKeptElsewhere' | 'slotHeldBy' | 'isToEnd' | 'matters' | 'policyOf'> => ({
  podOf: uid => engine().podOf(uid),
  isKeptElsewhere: (lease, generation) => isKeptElsewhere(engine().snapshot, lease, generation),
  slotHeldBy: uid => engine().slotHeldBy(uid),
  isToEnd: uid => engine().isToEnd(uid),
  matters: pod => engine().matters(pod),
  policyOf: slot => engine().policyOf(slot),
})

function createSuspensions(): Pick<TaskContext, 'suspendProbes' | 'onProber'> {
  const suspensions = new Map<string, () => () => void>()
  return {
    suspendProbes: uid => suspensions.get(uid)?.() ?? (() => undefined),
    onProber: (uid, suspend) => {
      if (suspend === undefined) suspensions.delete(uid)
      else suspensions.set(uid, suspend)
    },
  }
}
