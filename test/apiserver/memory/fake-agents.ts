/**
 * Stands in for the agents of some nodes where a test needs the real API server but no memory. Keeps their reports, and
 * puts pods on stage when a Lease names them, as far as the operator can see.
 */
import { isCloning } from '../../../src/api/clone-of.ts'
import { isAtGate } from '../../../src/api/gate.ts'
import { annotations, labels } from '../../../src/api/labels.ts'
import { nodeReports, type SlotReport } from '../../../src/api/node-report.ts'
import { type NumberedSlotLease, parseNumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { isUnderstudy, podConditions, servingReasons } from '../../../src/api/pod-contract.ts'
import type { Api } from '../../../src/kube/api.ts'
import { systemClock as clock } from '../../../src/kube/clock.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import { silentLog } from '../../../src/kube/log.ts'
import { systemRandom as random } from '../../../src/kube/random.ts'
import { createReflector } from '../../../src/kube/reflector.ts'
import { type Lease, leases, type Pod, pods } from '../../../src/kube/resources.ts'
import { createStore } from '../../../src/kube/store.ts'
import type { Machine } from '../../../src/slot/decide/machine-fit.ts'

export interface FakeAgents extends AsyncDisposable {
  /** Pods that cannot be put on stage; `all`: none can. */
  readonly failing: Set<string>
  /** Pods for which no agent reports anything when they are called. */
  readonly mute: Set<string>
  /** Pods that no agent saves when requested. */
  readonly deaf: Set<string>
  /** Nodes whose copies are not usable. */
  readonly useless: Set<string>
  /** Nodes that report that they keep nothing. */
  readonly emptied: Set<string>
  /** Reasons why these nodes write nothing to their disks. */
  readonly diskTrouble: Map<string, string>
  /** Nodes that are cut off: their agents write nothing. */
  readonly cutOff: Set<string>
  /** Nodes about whose primaries the sentinels of other nodes state that they are silent. */
  readonly unheard: Set<string>
  /** Further data about the machines in the nodes' reports. */
  readonly machines: Map<string, Partial<Machine>>
  /** Every condition that put a pod on stage, in order: `pod epoch`. */
  readonly stages: readonly string[]
  /** Reports that the app of this pod has ended. */
  declareDead(name: string): Promise<void>
  /** Writes the reports again. */
  report(): Promise<void>
}

export async function startFakeAgents(
  api: Api,
  namespace: string,
  nodes: readonly string[],
  { votes = false, clones = false }: { readonly votes?: boolean; readonly clones?: boolean } = {},
): Promise<FakeAgents> {
  const stop = new AbortController()
  const failing = new Set<string>()
  const mute = new Set<string>()
  const deaf = new Set<string>()
  const useless = new Set<string>()
  const [emptied, cutOff, unheard] = [new Set<string>(), new Set<string>(), new Set<string>()]
  const machines = new Map<string, Partial<Machine>>()
  const diskTrouble = new Map<string, string>()
  const stages: string[] = []
  const podStore = createStore<Pod>()
  const leaseStore = createStore<Lease>()
  const work = new Set<Promise<void>>()
  const done = new Set<string>()

  const condition = async (name: string, type: string, status: string, reason: string, message: string) => {
    const body = {
      status: {
        conditions: [{ type, status, reason, message, lastTransitionTime: new Date().toISOString() }],
      },
    }
    await api.patch(pods, { namespace, name }, { type: 'strategic', body }, { subresource: 'status' })
  }

  const slotLeases = (): NumberedSlotLease[] =>
    leaseStore.list().flatMap(lease => parseNumberedSlotLease(lease) ?? [])
  const podBy = (uid: string) => podStore.list().find(pod => pod.metadata.uid === uid)
  const stage = async (lease: NumberedSlotLease): Promise<void> => {
    const pod = podBy(lease.holder.uid)
    if (pod?.status?.podIP === undefined || !isUnderstudy(pod) || isAtGate(pod)) return
    const { name } = pod.metadata
    const word = `${name} ${lease.epoch}`
    if (done.has(word) || mute.has(name)) return
    done.add(word)
    if (failing.has(name) || failing.has('all')) {
      await condition(name, podConditions.understudy, 'False', 'RestoreFailed', 'the image is torn')
      return
    }
    stages.push(word)
    await condition(name, podConditions.serving, 'True', servingReasons.onStage, `epoch ${lease.epoch}`)
  }

  /** True if a hot backup of the set is on this node. */
  const holdsOn = (node: string, { group }: NumberedSlotLease) =>
    podStore
      .list()
      .some(
        ({ metadata, spec }) =>
          spec?.nodeName === node &&
          metadata.labels?.[labels.set] === group &&
          metadata.labels?.[labels.type] === 'hotbackup',
      )
  /** By incarnation of a slot: the values of the annotation that requests a checkpoint. Each value adds a generation. */
  const asked = new Map<string, string[]>()
  const requestsOf = ({ incarnation, holder }: NumberedSlotLease): readonly string[] => {
    const known = asked.get(incarnation) ?? []
    const word = podBy(holder.uid)?.metadata.annotations?.[annotations.checkpointRequested]
    if (word !== undefined && !known.includes(word)) asked.set(incarnation, [...known, word])
    return asked.get(incarnation) ?? []
  }

  const slotReport = (node: string, lease: NumberedSlotLease): SlotReport[] => {
    const { name, slot, incarnation, fence } = lease
    const { term = 0, version = 0 } = (votes && fence) || {}
    const requests = deaf.has(lease.holder.name) ? [] : requestsOf(lease)
    const answered = requests.at(-1)
    const common = {
      namespace,
      name,
      incarnation,
      generation: emptied.has(node) ? 0 : 1 + requests.length,
      takenAt: new Date().toISOString(),
      bytes: 4096,
      // Its primary is stopped, so this generation is the last.
      ...(lease.handover !== undefined &&
        !deaf.has(lease.holder.name) && { final: true, takenAt: '2030-01-01T00:00:00.000Z' }),
      frozenSeconds: 0.0072,
      ...(clones && { epoch: lease.epoch }),
    }
    if (lease.node === node)
      return [
        {
          ...common,
          ...{ role: 'source', intervalSeconds: 10 },
          // The copy that this node has made for a slot without a primary.
          ...(clones && isCloning(lease) && { usable: 'Cold' }),
          ...(version > 0 && { acknowledged: { term, version } }),
          ...('final' in common && {
            standsForSeconds: 60,
            ...(lease.handovers !== undefined && { standsForHandover: lease.handovers }),
          }),
          ...(answered === undefined ? {} : { answeredRequest: answered }),
        },
      ]
    if (!lease.holders.includes(node)) return []
    const heir = lease.heir && podBy(lease.heir.uid)
    // A pod holds only one slot's frozen clone.
    const first = slotLeases()
      .filter(other => other.heir?.uid === lease.heir?.uid)
      .sort((a, b) => a.slot - b.slot)[0]
    const isFrozen = heir?.spec?.nodeName === node && first?.slot === slot
    const frozen = isFrozen ? { understudyUid: heir.metadata.uid } : undefined
    return [
      {
        ...common,
        role: 'holder',
        pipelineSeconds: 0.2,
        ...(version > 0 && unheard.has(lease.node ?? '') && { silentTerm: term }),
        ...(useless.has(node) || emptied.has(node)
          ? {}
          : { usable: frozen ? 'Frozen' : holdsOn(node, lease) ? 'Staged' : 'Cold', ...frozen }),
      },
    ]
  }

  const ensure = async (name: string) => {
    try {
      await api.create(nodeReports, {
        apiVersion: 'backup.example.com/v1alpha1',
        kind: 'NodeReport',
        metadata: { name },
      })
    } catch (error) {
      if (!isKubeError(error, 'AlreadyExists')) throw error
    }
  }
  const told = new Map<string, string>()
  const reportOf = async (node: string, always: boolean) => {
    if (cutOff.has(node)) return
    const slots = slotLeases().flatMap(lease => slotReport(node, lease))
    const text = JSON.stringify([machines.get(node), slots.map(({ takenAt: _, ...slot }) => slot)])
    if (!always && told.get(node) === text) return
    told.set(node, text)
    const status = {
      version: 'test',
      address: '127.0.0.1:1',
      ...(votes && { heartbeats: { port: 1, run: runOf(node), key: '0'.repeat(182) } }),
      fingerprint: '0'.repeat(64),
      kernel: '6.0',
      criu: '4.2.1',
      architecture: 'amd64',
      // A merge patch removes only fields that it names.
      cpuFeatures: null,
      ...machines.get(node),
      disk: { bytes: 0, budget: 1, reason: diskTrouble.get(node) ?? null },
      checks: [{ name: 'canary', ok: true, message: 'restored' }],
      ready: true,
      ...(clones && { clones }),
      slots,
      slotsKnown: true,
      updatedAt: new Date().toISOString(),
    }
    await api.patch(
      nodeReports,
      { name: node },
      { type: 'merge', body: { status } },
      { subresource: 'status' },
    )
  }
  // Writes all reports, one round at a time, and another round if something has changed meanwhile.
  let reporting: Promise<void> | undefined
  let again = false
  const report = async (always = false): Promise<void> => {
    if (reporting !== undefined) {
      again = true
      return reporting
    }
    reporting = (async () => {
      do {
        again = false
        for (const node of nodes) await reportOf(node, always)
      } while (again && !stop.signal.aborted)
    })().finally(() => {
      reporting = undefined
    })
    return reporting
  }

  const soon = (task: () => Promise<void>) => {
    const running = task()
      .catch((error: unknown) => {
        if (!stop.signal.aborted && !isKubeError(error, 'NotFound', 'Conflict'))
          console.error('fake agents', error)
      })
      .finally(() => work.delete(running))
    work.add(running)
  }
  const look = () => {
    for (const lease of slotLeases()) soon(() => stage(lease))
    soon(() => report())
  }
  for (const node of nodes) await ensure(node)
  leaseStore.subscribe(look)
  podStore.subscribe(look)
  const mirror = { api, query: { namespace }, clock, random, log: silentLog }
  const running = Promise.all([
    createReflector({ ...mirror, resource: leases, store: leaseStore }).run(stop.signal),
    createReflector({ ...mirror, resource: pods, store: podStore }).run(stop.signal),
  ])
  await report(true)
  // Like real agents, renew the reports: the operator does not trust a silent node.
  const alive = (async () => {
    while (!stop.signal.aborted) {
      await clock.sleep(8_000, stop.signal).catch(() => undefined)
      if (!stop.signal.aborted) soon(() => report(true))
    }
  })()
  return {
    failing,
    mute,
    deaf,
    useless,
    ...{ emptied, cutOff, unheard },
    machines,
    diskTrouble,
    stages,
    declareDead: name =>
      condition(name, podConditions.serving, 'False', servingReasons.died, 'container app has ended'),
    report: () => report(true),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
      await alive
      await Promise.all(work)
      for (const name of nodes) await api.delete(nodeReports, { name })
    },
  }
}

/** Returns the run of the sentinel on this node. */
const runOf = (node: string) => Buffer.from(node.padEnd(8).slice(-8)).toString('hex')
