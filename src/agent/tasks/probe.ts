import { podConditions, servingReasons } from '../../api/pod-contract.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { type ParsedProbe, parseProbe } from '../../probe/handler.ts'
import { createProber, type ProberEvent } from '../../probe/prober.ts'
import type { TaskOf } from '../decide/task.ts'
import { onStageOf } from './on-stage-condition.ts'
import type { ProbeTargetContext } from './probe-target.ts'
import { targetOf } from './probe-target.ts'
import type { EndContext } from './stop-primary.ts'
import { endPod } from './stop-primary.ts'
import type { TaskContext } from './task-context.ts'

type ProbeContext = ProbeTargetContext &
  EndContext &
  Pick<TaskContext, 'podOf' | 'patch' | 'matters' | 'onProber' | 'probe' | 'log'>

/**
 * Probes an understudy on stage in place of the kubelet, which does not have its probes. If a primary still has its
 * probes, this task probes only its liveness, at the faster pace that the set wants.
 */
export async function probe(work: ProbeContext, task: TaskOf<'probe'>, signal: AbortSignal): Promise<void> {
  const { pod, lease } = task
  const { clock, log } = work
  // Its start is the kubelet's business: the template's delays are made for it.
  while (!pod.understudy && work.podOf(pod.uid)?.ready !== true) await clock.sleep(startPollMs, signal)
  const target = targetOf(work, pod)
  const told = (work.podOf(pod.uid) ?? pod).serving
  // The pod is on stage because it answered; only an earlier agent may have reported since that it does not.
  const readyAtStart = pod.understudy && told?.reason !== servingReasons.notAnswering
  const unready = new Map<string, string>(
    pod.understudy && !readyAtStart
      ? pod.apps.flatMap(({ name, readinessProbe }) =>
          readinessProbe === undefined ? [] : [[name, told?.message ?? '']],
        )
      : [],
  )
  const over = new AbortController()
  const lost = Promise.withResolvers<{ container: string; message: string }>()

  /** One write at a time, the newest state last. */
  let writing = Promise.resolve()
  const tell = () => {
    writing = writing
      .then(async () => {
        const [problem] = unready
        await work.patch(pod, {
          type: podConditions.serving,
          status: problem === undefined ? 'True' : 'False',
          reason: problem === undefined ? servingReasons.onStage : servingReasons.notAnswering,
          ...(problem === undefined
            ? onStageOf(pod, lease?.epoch ?? pod.epoch)
            : { message: `container ${problem[0]}: ${problem[1]}` }),
        })
      })
      .catch((error: unknown) =>
        log.warn({ err: error, pod: pod.name }, 'cannot write the readiness of a pod'),
      )
  }
  const onEvent = (container: string) => (event: ProberEvent) => {
    switch (event.type) {
      case 'ready':
        if (unready.delete(container)) tell()
        return
      case 'notReady':
        unready.set(container, event.message)
        tell()
        return
      case 'lost':
        lost.resolve({ container, message: event.message })
        return
      case 'unsupported':
        log.info({ pod: pod.name, container, probe: event.kind }, event.message)
        return
    }
  }
  const probers = pod.apps.map(container => {
    const parsed = (kind: 'readinessProbe' | 'livenessProbe') => {
      const probe = container[kind]
      const result = probe && parseProbe(probe, container)
      if (typeof result === 'string') log.warn({ pod: pod.name, kind }, result)
      return typeof result === 'object' ? (pod.understudy ? started(result) : result) : undefined
    }
    return createProber({
      readiness: pod.understudy ? parsed('readinessProbe') : undefined,
      liveness: paced(parsed('livenessProbe'), lease?.policy),
      readyAtStart,
      target,
      clock,
      onEvent: onEvent(container.name),
      ...(work.probe === undefined ? {} : { probe: work.probe }),
    })
  })
  work.onProber(pod.uid, () => {
    const resume = probers.map(prober => prober.suspend())
    return () => {
      for (const each of resume) each()
    }
  })
  const onAbort = () => over.abort(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  const running = Promise.all(probers.map(prober => prober.run(over.signal)))
  try {
    const death = await Promise.race([lost.promise, running.then(() => aborted(over.signal))])
    if (death === undefined) return
    const { container, message } = death
    const slot = lease && slotName(lease)
    log.warn({ pod: pod.name, slot, container, problem: message }, 'liveness probe failed')
    // If no other pod could continue with the memory, the kubelet restarts the app by the same probe. In a set that no
    // longer keeps memory only this pod has lost its probes: the operator replaces it by another pod.
    if (lease === undefined || work.matters(pod))
      await endPod(work, pod, container, { what: `does not answer its liveness probe: ${message}` }, signal)
  } finally {
    over.abort()
    signal.removeEventListener('abort', onAbort)
    work.onProber(pod.uid, undefined)
    await Promise.allSettled([running, writing])
  }
}

const startPollMs = 200

/** Initial delays wait for a start, but the app ran already when it was saved. */
const started = ({ handler, timing }: ParsedProbe): ParsedProbe => ({
  handler,
  timing: { ...timing, initialDelayMs: 0 },
})

/** The set may ask for a faster pace than whole seconds allow. */
function paced(probe: ParsedProbe | undefined, policy: SlotPolicy | undefined): ParsedProbe | undefined {
  const liveness = policy?.liveness
  if (probe === undefined || liveness === undefined) return probe
  const { periodMs, failureThreshold } = liveness
  // The app runs already, restored or ready: there is no start to wait for.
  const timing = { ...probe.timing, initialDelayMs: 0, periodMs, failureThreshold }
  return { ...probe, timing: { ...timing, timeoutMs: Math.min(timing.timeoutMs, Math.max(periodMs, 100)) } }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise(resolve => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}
