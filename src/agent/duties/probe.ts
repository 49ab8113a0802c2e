import { podConditions, servingReasons } from '../../api/stage.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { isAgentError } from '../errors.ts'
import { type ParsedProbe, parseProbe } from '../probe/handler.ts'
import { createProber, type ProberEvent } from '../probe/prober.ts'
import { onStageMessage, watchName } from './deaths.ts'
import type { DutyOf } from './duty.ts'
import type { MemorySettings } from './snapshot.ts'
import type { Work } from './work.ts'

/** Asks an understudy on stage what the kubelet would ask, had its probes not been taken away. */
export async function probe(work: Work, duty: DutyOf<'probe'>, signal: AbortSignal): Promise<void> {
  const { pod, settings, lease } = duty
  const { clock, log } = work
  const target = { address: pod.ip ?? '' }
  const unready = new Map<string, string>()
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
          message:
            problem === undefined
              ? onStageMessage(pod, lease.epoch)
              : `container ${problem[0]}: ${problem[1]}`,
        })
      })
      .catch((error: unknown) => log.warn({ err: error, pod: pod.name }, 'readiness could not be told'))
  }
  const onEvent = (container: string) => (event: ProberEvent) => {
    switch (event.type) {
      case 'ready':
        // It is on stage because it answers: the first success is no news.
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
  const probers = containersOf(settings).map(container => {
    const parsed = (kind: 'readinessProbe' | 'livenessProbe') => {
      const probe = container[kind]
      const result = probe && parseProbe(probe, container)
      if (typeof result === 'string') log.warn({ pod: pod.name, kind }, result)
      return typeof result === 'object' ? result : undefined
    }
    return createProber({
      readiness: parsed('readinessProbe'),
      liveness: paced(parsed('livenessProbe'), settings),
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
    if (death !== undefined) await bury(work, duty, death, signal)
  } finally {
    over.abort()
    signal.removeEventListener('abort', onAbort)
    work.onProber(pod.uid, undefined)
    await Promise.allSettled([running, writing])
  }
}

/** It has stopped answering for good: nobody may reach it any more, and what is left of it must not write either. */
async function bury(
  work: Work,
  { pod, lease }: DutyOf<'probe'>,
  { container, message }: { readonly container: string; readonly message: string },
  signal: AbortSignal,
): Promise<void> {
  const { sentinel, understudies, deaths, log } = work
  log.warn({ pod: pod.name, slot: slotName(lease), container, problem: message }, 'liveness lost')
  const { located } = await understudies.enter(pod, signal)
  for (const { name, containerId } of located.containers)
    await sentinel
      .bury(watchName({ uid: pod.uid, container: name, containerId }))
      .catch((error: unknown) => log.warn({ err: error, pod: pod.name }, 'no grave'))
  const told = deaths.declare(pod, container, `does not answer its liveness probe: ${message}`)
  for (const { init } of located.containers)
    await sentinel.treeKill(init).catch((error: unknown) => {
      if (!isAgentError(error, 'ProcessGone')) throw error
    })
  await told
}

const containersOf = ({ template, containers }: MemorySettings) =>
  (template.spec?.containers ?? []).filter(({ name }) => containers.includes(name))

/** The set may ask for a faster pace than whole seconds allow. */
function paced(probe: ParsedProbe | undefined, { liveness }: MemorySettings): ParsedProbe | undefined {
  if (probe === undefined || liveness === undefined) return probe
  const { periodMs, failureThreshold } = liveness
  // It ran already when it was saved: there is no start to wait for.
  const timing = { ...probe.timing, initialDelayMs: 0, periodMs, failureThreshold }
  return { ...probe, timing: { ...timing, timeoutMs: Math.min(timing.timeoutMs, Math.max(periodMs, 100)) } }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise(resolve => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}
