/**
 * Stands in for scheduler, kubelet and containers where a test needs the real API server but no nodes. Binds pods,
 * makes them Ready, ends deleted ones, and opens real gates on addresses of the loopback network.
 */
import { createServer, type Server } from 'node:net'
import { labels } from '../../../src/api/labels.ts'
import { gateContainerName, gatePort } from '../../../src/backuppodset/pod/gate-container.ts'
import type { Api } from '../../../src/kube/api.ts'
import { systemClock as clock } from '../../../src/kube/clock.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import { silentLog } from '../../../src/kube/log.ts'
import { systemRandom as random } from '../../../src/kube/random.ts'
import { createReflector } from '../../../src/kube/reflector.ts'
import { type Pod, pods } from '../../../src/kube/resources.ts'
import { createStore } from '../../../src/kube/store.ts'
import { tokenDigest } from '../../../src/slot/gate/token.ts'
import { worker } from './plane.ts'

export interface FakeKubelet extends AsyncDisposable {
  /** Pods whose gates accept connections and never answer. */
  readonly silent: Set<string>
  /** Sets to whose pods' gates no connection is possible. */
  readonly unreachable: Set<string>
  /** These pods never become Ready. */
  readonly unready: Set<string>
  /** Pods that stay after their deletion, until they are removed from this set and change. */
  readonly lingering: Set<string>
  /** When the containers of these pods were restarted, once, by the names of the pods. */
  readonly restarted: Map<string, Date>
  /** Opens the gate of this pod, as if it had received a message. */
  open(name: string): void
  /** Checks all pods again, after a change that is not in the API. */
  look(): void
}

interface Life {
  readonly address: string
  gate: 'none' | 'waiting' | 'open'
  /** RFC 3339; the pod's creation time while it is at its gate. */
  initialized: string
  server: Server | undefined
  app: { close(): unknown } | undefined
  told: string
}

let lastAddress = 0
/** Each worker has its own range: they run at the same time, and all gates have the same port. */
const loopback = `127.${20 + worker}`

export interface FakeKubeletOptions {
  /** Chooses a pod's node; default: one of three, by its uid. */
  readonly place?: (pod: Pod, others: readonly Pod[]) => string
  /** Starts a pod's app at its address, which is reachable by then; called once its gate, if any, is open. */
  readonly app?: (pod: Pod, address: string) => { close(): unknown }
}

/** @param restartedAt of its containers; undefined: no container status. */
function statusOf(
  pod: Pod,
  life: Life,
  { isReady, restartedAt }: { readonly isReady: boolean; readonly restartedAt: Date | undefined },
) {
  const gated = life.gate === 'waiting'
  return {
    phase: gated ? 'Pending' : 'Running',
    podIP: life.address,
    podIPs: [{ ip: life.address }],
    conditions: [
      {
        type: 'Initialized',
        status: gated ? 'False' : 'True',
        lastTransitionTime: life.initialized,
      },
      {
        type: 'Ready',
        status: isReady ? 'True' : 'False',
        lastTransitionTime: new Date(pod.metadata.creationTimestamp ?? 0).toISOString(),
      },
    ],
    ...(restartedAt === undefined ? {} : { containerStatuses: statusesOf(pod, restartedAt) }),
    ...(life.gate === 'none'
      ? {}
      : {
          initContainerStatuses: [
            {
              name: gateContainerName,
              image: '',
              imageID: '',
              ready: !gated,
              restartCount: 0,
              containerID: `fake://${pod.metadata.uid}`,
              ...(gated || gateIn(pod)?.restartPolicy === 'Always'
                ? { started: !gated, state: { running: { startedAt: null } } }
                : { state: { terminated: { exitCode: 0, reason: 'Completed' } } }),
            },
          ],
        }),
  }
}

/** The only node that the pod's affinity allows by its name. */
function pinnedTo({ spec }: Pod): string | undefined {
  const terms =
    spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  const fields = (terms ?? []).flatMap(({ matchFields = [] }) => matchFields)
  return fields.find(({ key, operator }) => key === 'metadata.name' && operator === 'In')?.values?.[0]
}

export function startFakeKubelet(
  api: Api,
  namespace: string,
  {
    place = ({ metadata: { uid } }) => `fake-${Number.parseInt(uid.slice(-1), 16) % 3}`,
    app,
  }: FakeKubeletOptions = {},
): FakeKubelet {
  const stop = new AbortController()
  const lives = new Map<string, Life>()
  const silent = new Set<string>()
  const unreachable = new Set<string>()
  const unready = new Set<string>()
  const lingering = new Set<string>()
  const restarted = new Map<string, Date>()
  const store = createStore<Pod>()
  const work = new Set<Promise<void>>()

  /** By uid: one write of a pod after another, or an older status could arrive last, and stay. */
  const turns = new Map<string, Promise<void>>()

  const settle = (pod: Pod) => {
    const { uid } = pod.metadata
    const running = (turns.get(uid) ?? Promise.resolve())
      .then(() => handle(pod))
      .catch((error: unknown) => {
        if (stop.signal.aborted || isKubeError(error, 'NotFound', 'Conflict')) return
        console.error('fake kubelet', error)
      })
      .finally(() => {
        work.delete(running)
        if (turns.get(uid) === running) turns.delete(uid)
      })
    turns.set(uid, running)
    work.add(running)
  }

  const handle = async (pod: Pod): Promise<void> => {
    const { uid, name } = pod.metadata
    const ref = { namespace, name }
    if (pod.metadata.deletionTimestamp !== undefined) {
      if (lingering.has(name)) return
      lives.get(uid)?.server?.close()
      lives.get(uid)?.app?.close()
      lives.delete(uid)
      await api.delete(pods, ref, { uid, gracePeriodSeconds: 0 })
      return
    }
    if (pod.spec?.nodeName === undefined) {
      // As for the scheduler, a pod with a gate is not there yet, and a nominated pod goes to its node.
      if ((pod.spec?.schedulingGates ?? []).length > 0) return
      const path = `/api/v1/namespaces/${namespace}/pods/${name}/binding`
      const others = store.list().filter(other => other.metadata.uid !== uid)
      const chosen = pod.status?.nominatedNodeName ?? pinnedTo(pod) ?? place(pod, others)
      const target = { apiVersion: 'v1', kind: 'Node', name: chosen }
      await api.request('POST', path, {
        body: { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target },
      })
      return
    }
    const life = lives.get(uid) ?? bear(pod)
    const gated = life.gate === 'waiting'
    if (!gated && app) life.app ??= app(pod, life.address)
    const status = statusOf(pod, life, {
      isReady: !gated && !unready.has(name),
      restartedAt: restarted.get(name),
    })
    const told = JSON.stringify(status)
    if (life.told === told) return
    await api.patch(
      pods,
      ref,
      { type: 'strategic', body: { metadata: { uid }, status } },
      { subresource: 'status' },
    )
    life.told = told
  }

  const letIn = (life: Life) => {
    life.gate = 'open'
    life.initialized = new Date().toISOString()
    life.server?.close()
  }

  const bear = (pod: Pod): Life => {
    lastAddress += 1
    const gate = gateIn(pod)
    // Gates really listen. Other pods get other addresses, because Services refuse loopback addresses as endpoints.
    const address = `${gate || app ? loopback : '10.20'}.${lastAddress >> 8}.${lastAddress & 255}`
    const life: Life = {
      address,
      gate: gate ? 'waiting' : 'none',
      initialized: new Date(pod.metadata.creationTimestamp ?? 0).toISOString(),
      server: undefined,
      app: undefined,
      told: '',
    }
    lives.set(pod.metadata.uid, life)
    if (gate) {
      const digest = gate.command?.[gate.command.indexOf('--token-sha256') + 1]
      life.server = createServer(socket => {
        socket.setEncoding('latin1').on('error', () => socket.destroy())
        socket.once('data', (line: string) => {
          if (silent.has(pod.metadata.name)) return
          const [, , token = ''] = line.trimEnd().split(' ')
          const verdict = tokenDigest(token) === digest ? 'woken' : 'denied'
          socket.end(`understudy/1 ${verdict} ${BigInt(Date.now()) * 1_000_000n}\n`)
          if (verdict === 'denied') return
          letIn(life)
          const latest = store.get(`${namespace}/${pod.metadata.name}`)
          if (latest) settle(latest)
        })
      })
      // An unreachable gate listens on another port.
      life.server.listen(unreachable.has(pod.metadata.labels?.[labels.set] ?? '') ? 0 : gatePort, address)
    }
    return life
  }

  store.subscribe(change => {
    if (change.type !== 'deleted') settle(change.object)
    else {
      lives.get(change.object.metadata.uid)?.server?.close()
      lives.get(change.object.metadata.uid)?.app?.close()
    }
  })
  const reflector = createReflector({
    api,
    resource: pods,
    query: { namespace },
    store,
    clock,
    random,
    log: silentLog,
  })
  const running = reflector.run(stop.signal)
  return {
    silent,
    unreachable,
    unready,
    lingering,
    restarted,
    open(name) {
      const pod = store.get(`${namespace}/${name}`)
      const life = pod && lives.get(pod.metadata.uid)
      if (pod === undefined || life === undefined) throw new Error(`no pod ${name}`)
      letIn(life)
      settle(pod)
    },
    look: () => store.list().forEach(settle),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
      await Promise.all(work)
      for (const { server, app: running } of lives.values()) {
        server?.close()
        running?.close()
      }
    },
  }
}

const gateIn = (pod: Pod) => pod.spec?.initContainers?.find(({ name }) => name === gateContainerName)

const statusesOf = (pod: Pod, restartedAt: Date) =>
  (pod.spec?.containers ?? []).map(({ name }) => ({
    name,
    image: '',
    imageID: '',
    ready: true,
    restartCount: 1,
    state: { running: { startedAt: `${restartedAt.toISOString().slice(0, 19)}Z` } },
  }))
