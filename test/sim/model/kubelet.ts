/**
 * The kubelet and the runtime of one machine: starts containers, restarts ended ones, updates the pods' status, ends
 * pods.
 *
 * Long because the status that it writes is that of all containers which it starts and ends.
 */
import { gateContainerName, gateOf } from '../../../src/api/gate.ts'
import { labels } from '../../../src/api/labels.ts'
import { isUnderstudy, savedAnnotation } from '../../../src/api/pod-contract.ts'
import type { Api } from '../../../src/kube/api-types.ts'
import { silentLog } from '../../../src/kube/log.ts'
import type { Random } from '../../../src/kube/random.ts'
import { createReflector } from '../../../src/kube/reflector.ts'
import { type Pod, pods } from '../../../src/kube/resources.ts'
import { createStore } from '../../../src/kube/store.ts'
import type { VirtualTime } from './virtual-time.ts'
import {
  answers,
  type Container,
  type Ending,
  halt,
  isToRun,
  letRun,
  type Machine,
  type PodOnNode,
} from './world.ts'

export interface Kubelet {
  /** Call after a gate has opened, or after any other change in a pod. */
  look(): void
  /**
   * Ends the first process of a container, as an exit or a kill. The container started in its place has fresh memory.
   */
  endContainer(pod: PodOnNode, container: Container, by: Ending['by']): void
}

interface Options {
  readonly machine: Machine
  readonly api: Api
  readonly time: VirtualTime
  readonly random: Random
  readonly ipOf: () => string
  readonly genesisOf: (pod: Pod) => string
  readonly onDeath: (pod: PodOnNode, container: Container) => void
  /** Fires when the machine's boot ends. */
  readonly signal: AbortSignal
}

const periodMs = 500
const startMs = 400
const restartMs = 900

export function startKubelet(options: Options): Kubelet {
  const { machine, api, time, random, signal, onDeath } = options
  const clock = time.clockOf(machine.kernel)
  const party = machine.kernel
  const store = createStore<Pod>()
  const told = new Map<string, string>()
  const busy = new Set<string>()
  /** Uids of busy pods that have changed since. */
  const again = new Set<string>()

  const containerId = (pod: PodOnNode, name: string, restarts: number) =>
    `containerd://${pod.uid.slice(-4)}${name}${machine.boot}x${restarts}`.padEnd(32, '0')

  const start = (pod: PodOnNode, container: Container, object: Pod) => {
    time.after(party, machine.slowStartMs + (container.restarts === 0 ? startMs : restartMs), () => {
      if (pod.killed || container.up || !machine.pods.has(pod.uid)) return
      container.id = containerId(pod, container.name, container.restarts)
      container.up = true
      container.startedAt = time.now()
      if (!container.holds) {
        const memory = { genesis: `${options.genesisOf(object)}`, until: time.now() }
        container.app = { memory, runsSince: undefined }
        letRun(pod, container.app, time.now())
      } else container.app = undefined
      soon(pod.uid)
    })
  }

  /** Adds a pod that this boot has not seen. The processes of an earlier boot ended with it. */
  const admit = (object: Pod) => {
    const { uid, name, namespace = '' } = object.metadata
    const known = machine.pods.get(uid)
    if (known !== undefined) return known
    const saved = object.metadata.annotations?.[savedAnnotation]?.split(',')
    const before = new Map(object.status?.containerStatuses?.map(each => [each.name, each.restartCount]))
    const gate = object.spec?.initContainers?.find(each => each.name === gateContainerName)
    const opened = gateOf(object)?.opened === true
    const pod: PodOnNode = {
      ...{ uid, name, namespace },
      ip: object.status?.podIP ?? options.ipOf(),
      set: object.metadata.labels?.[labels.set] ?? '',
      containers: (object.spec?.containers ?? []).map(each => ({
        name: each.name,
        id: '',
        restarts: before.has(each.name) ? (before.get(each.name) ?? 0) + 1 : 0,
        startedAt: 0,
        holds: isUnderstudy(object) && (saved?.includes(each.name) ?? true),
        up: false,
        app: undefined,
      })),
      gate:
        gate === undefined || opened
          ? undefined
          : {
              id: `containerd://gate${uid.slice(-4)}${machine.boot}`.padEnd(32, '0'),
              digest: gate.command?.[gate.command.indexOf('--token-sha256') + 1] ?? '',
            },
      atGate: gate !== undefined && !opened,
      passesUntil: Number.POSITIVE_INFINITY,
      keptOut: new Set(),
      frozen: undefined,
      grave: undefined,
      isTold: false,
      killAt: undefined,
      killed: false,
    }
    machine.pods.set(uid, pod)
    if (pod.gate === undefined) for (const container of pod.containers) start(pod, container, object)
    return pod
  }

  const statusOf = (object: Pod, pod: PodOnNode) => {
    const isRunning = pod.gate === undefined
    const areUp = isRunning && pod.containers.every(({ up }) => up)
    const gates = object.spec?.readinessGates?.map(({ conditionType }) => conditionType) ?? []
    const has = (type: string) =>
      object.status?.conditions?.some(each => each.type === type && each.status === 'True') === true
    const areWell = pod.containers.every(({ up, holds, app }) => up && (holds || answers(app, time.now())))
    const isReady = isRunning && areWell && gates.every(has)
    const condition = (type: string, value: boolean) => {
      const old = object.status?.conditions?.find(each => each.type === type)
      const status = value ? 'True' : 'False'
      const lastTransitionTime = old?.status === status ? old.lastTransitionTime : rfc3339(clock.now())
      return { type, status, lastTransitionTime }
    }
    const init = object.spec?.initContainers?.find(each => each.name === gateContainerName)
    return {
      phase: isRunning ? 'Running' : 'Pending',
      podIP: pod.ip,
      conditions: [
        condition('Initialized', isRunning),
        condition('ContainersReady', areUp && areWell),
        condition('Ready', isReady),
      ],
      ...(init === undefined
        ? {}
        : {
            initContainerStatuses: [
              {
                name: gateContainerName,
                ...{ image: '', imageID: '', ready: isRunning, restartCount: 0, started: isRunning },
                containerID:
                  pod.gate?.id ?? `containerd://gate${pod.uid.slice(-4)}${machine.boot}`.padEnd(32, '0'),
                state: { running: { startedAt: rfc3339(time.epoch) } },
              },
            ],
          }),
      containerStatuses: pod.containers.map(({ name, id, restarts, up, startedAt }) => ({
        name,
        ...{ image: 'web:1', imageID: 'sha256:1', ready: up, restartCount: restarts },
        ...(id === '' ? {} : { containerID: id }),
        state: up
          ? { running: { startedAt: rfc3339(time.epoch + startedAt + machine.kernel.wallOffsetMs) } }
          : { waiting: { reason: restarts > 4 ? 'CrashLoopBackOff' : 'ContainerCreating' } },
      })),
    }
  }

  const report = async (object: Pod, pod: PodOnNode) => {
    const { uid, namespace, name } = object.metadata
    const status = statusOf(object, pod)
    const text = JSON.stringify(status)
    if (told.get(uid) === text) return
    await api.patch(
      pods,
      { namespace, name },
      { type: 'strategic', body: { metadata: { uid }, status } },
      { subresource: 'status', signal },
    )
    told.set(uid, text)
  }

  /** Sends the signal to end, to each container after its hook. A stopped app gets it, too. */
  const tell = (pod: PodOnNode, graceMs: number, spec?: Pod['spec']) => {
    if (pod.isTold) return
    pod.isTold = true
    for (const container of pod.containers) {
      const { lifecycle } = spec?.containers.find(({ name }) => name === container.name) ?? {}
      const send = () => {
        if (container.app !== undefined) container.app.memory = { ...container.app.memory, isToEnd: true }
      }
      const afterMs = Math.min((lifecycle?.preStop?.sleep?.seconds ?? 0) * 1000, graceMs)
      if (afterMs === 0) send()
      else time.after(party, afterMs, send)
    }
  }

  const settle = async (uid: string) => {
    const object = store.list().find(({ metadata }) => metadata.uid === uid)
    if (object === undefined) {
      // After a forced deletion the kubelet still gives the pod a grace period.
      const pod = machine.pods.get(uid)
      if (pod !== undefined && !pod.killed) {
        pod.killAt ??= time.now() + 5_000
        tell(pod, 0)
        if (time.now() >= pod.killAt) end(pod)
        else time.after(party, pod.killAt - time.now(), () => soon(uid))
      }
      return
    }
    const ref = { namespace: object.metadata.namespace, name: object.metadata.name }
    if (object.metadata.deletionTimestamp !== undefined) {
      const pod = machine.pods.get(uid)
      if (pod !== undefined && !pod.killed) {
        const grace = object.metadata.deletionGracePeriodSeconds ?? 30
        pod.killAt ??= time.now() + grace * 1000
        tell(pod, grace * 1000, object.spec)
        // Also while a write of its status waits for the API server.
        time.after(party, pod.killAt - time.now(), () => pod.killed || end(pod))
        // Apps that hold or have ended stop at once; others use their whole grace period.
        const lingers =
          pod.gate === undefined && pod.containers.some(({ app }) => app !== undefined && isToRun(pod, app))
        if (lingers && time.now() < pod.killAt) {
          time.after(party, Math.min(periodMs, pod.killAt - time.now()), () => soon(uid))
          return await report(object, pod)
        }
        end(pod)
      }
      machine.pods.delete(uid)
      await api.delete(pods, ref, { uid, gracePeriodSeconds: 0 }, { signal })
      return
    }
    await report(object, admit(object))
  }

  const end = (pod: PodOnNode) => {
    pod.killed = true
    for (const container of pod.containers) if (container.up) stop(pod, container, 'kubelet')
  }

  const stop = (pod: PodOnNode, container: Container, by: Ending['by']) => {
    const { app } = container
    container.up = false
    container.app = undefined
    if (app !== undefined && halt(pod, app, time.now()))
      machine.endings.push({ at: time.now(), uid: pod.uid, genesis: app.memory.genesis, by })
    onDeath(pod, container)
  }

  const soon = (uid: string) => {
    if (signal.aborted) return
    if (busy.has(uid)) {
      // The write that is under way says what was true when it began.
      again.add(uid)
      return
    }
    busy.add(uid)
    time.after(party, 20 + random.next() * 60, () => void now(uid))
  }

  const now = async (uid: string): Promise<void> => {
    try {
      do {
        again.delete(uid)
        await settle(uid)
      } while (again.has(uid))
      busy.delete(uid)
    } catch {
      busy.delete(uid)
      time.after(party, 500, () => soon(uid))
    }
  }

  store.subscribe(({ object }) => soon(object.metadata.uid))
  const reflector = createReflector({
    ...{ api, clock, random, log: silentLog, store, resource: pods },
    query: { fieldSelector: `spec.nodeName=${machine.name}` },
  })
  void reflector.run(signal)

  const objectOf = (uid: string) => store.list().find(({ metadata }) => metadata.uid === uid)

  return {
    look() {
      for (const pod of machine.pods.values()) {
        const object = objectOf(pod.uid)
        if (pod.gate === undefined && pod.atGate && object !== undefined) {
          pod.atGate = false
          for (const container of pod.containers) start(pod, container, object)
        }
        soon(pod.uid)
      }
    },
    endContainer(pod, container, by) {
      if (!container.up) return
      stop(pod, container, by)
      container.restarts += 1
      const object = objectOf(pod.uid)
      if (object !== undefined && !pod.killed) start(pod, container, object)
      soon(pod.uid)
    },
  }
}

export const rfc3339 = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
