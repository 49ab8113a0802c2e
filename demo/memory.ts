/** The last scene: a primary's memory outlives its process, and a client observes it. */
import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { until as waitUntil } from '../playground/until.ts'
import { type BackupPodSet, backupPodSets } from '../src/api/backuppodset.ts'
import { labels } from '../src/api/labels.ts'
import { nodeReports } from '../src/api/node-report.ts'
import { slotLeaseName } from '../src/api/numbered-slot.ts'
import type { LastFailover, SlotStatus } from '../src/api/slot-status.ts'
import { isKubeError } from '../src/kube/errors.ts'
import { pods, services } from '../src/kube/resources.ts'
import { type Screen, seconds, styled } from './screen.ts'
import type { Stage } from './stage.ts'
import { type Probe, seenBetween, trafficLine } from './traffic.ts'

const counted = 60
const pollMs = 200

interface SetRef {
  readonly namespace: string
  readonly name: string
}

/** @returns the deviations; also empty if no node can move memory, which the screen then says */
export async function tellMemory(
  stage: Stage,
  screen: Screen,
  next: () => Promise<void>,
  signal: AbortSignal,
): Promise<string[]> {
  const { api, namespace } = stage
  if (!(await canKeepMemory(stage, screen, signal))) return []
  const ref = await createCounter(stage, screen, signal)
  await untilProtected(stage, screen, ref, signal)
  const service = await until(stage, 'the Service of slot 0', signal, () =>
    api.get(services, { namespace, name: slotLeaseName(ref.name, 0) }, { signal }).catch(ignoreMissing),
  )
  await using traffic = stage.traffic(service)
  screen.lines(`A client counts through the Service ${service.metadata.name}, every 50 ms.`, '')
  {
    using _ = screen.live(() => [trafficLine(traffic.probes), ...countLine(traffic.probes)])
    await until(stage, 'the client’s answers', signal, () =>
      Promise.resolve(counts(traffic.probes).length >= counted ? true : undefined),
    )
  }
  await next()
  const failover = await crash(stage, screen, ref, signal)
  await until(stage, 'answers after the failover', signal, () =>
    Promise.resolve(
      counts(traffic.probes.filter(({ at }) => at > failover.killedAt)).length >= counted ? true : undefined,
    ),
  )
  const wrong = compareCounts(screen, failover, traffic.probes)
  await api.delete(backupPodSets, ref, { propagationPolicy: 'Background' }, { signal })
  return wrong
}

/** Says on the screen what is missing. */
async function canKeepMemory({ api }: Stage, screen: Screen, signal: AbortSignal): Promise<boolean> {
  const { items } = await api.list(nodeReports, {}, { signal }).catch((error: unknown) => {
    if (isKubeError(error, 'NotFound')) return { items: [] }
    throw error
  })
  const able = items.filter(({ status }) => status?.ready === true).length
  if (able < 2)
    screen.lines(
      '',
      styled.dim(
        `Memory needs two nodes whose agent is ready; this cluster has ${able}. kubectl get nodereports says why.`,
      ),
    )
  return able >= 2
}

/** Creates the set of the sample, in place of one of an earlier demo. */
async function createCounter(stage: Stage, screen: Screen, signal: AbortSignal): Promise<SetRef> {
  const { api, namespace } = stage
  const set = parse(
    await readFile(new URL('../samples/memory.yaml', import.meta.url), 'utf8'),
  ) as BackupPodSet
  const ref = { namespace, name: set.metadata.name }
  screen.lines(
    '',
    styled.title('Memory: a counter that continues in another pod'),
    'Every second the agent of the node of the primary saves its memory and sends it to the node of the hot',
    'backup, where another agent restores it in the process tree of the backup: complete, and frozen.',
    styled.command('kubectl apply -f samples/memory.yaml'),
    '',
  )
  await api.delete(backupPodSets, ref, { propagationPolicy: 'Foreground' }, { signal }).catch(ignoreMissing)
  await until(stage, 'the end of an earlier set of the demo', signal, async () =>
    (await api.get(backupPodSets, ref, { signal }).catch(ignoreMissing)) === undefined ? true : undefined,
  )
  await api.create(backupPodSets, set, { namespace, signal })
  return ref
}

const slotOf = async ({ api }: Stage, ref: SetRef, signal: AbortSignal): Promise<SlotStatus | undefined> =>
  (await api.get(backupPodSets, ref, { signal })).status?.slots?.[0]

async function untilProtected(stage: Stage, screen: Screen, ref: SetRef, signal: AbortSignal): Promise<void> {
  let seen: SlotStatus | undefined
  const line = () => [
    seen === undefined
      ? '  the pods are starting'
      : `  slot 0: ${seen.protection ?? 'None'}, saved state ${seen.generation ?? 0}, usable on ${seen.usableOn?.join(', ') || 'no node yet'}`,
  ]
  using _ = screen.live(line)
  await until(stage, 'protection of the memory', signal, async () => {
    seen = await slotOf(stage, ref, signal)
    await imagesAreThere(stage, ref.name, signal)
    return (seen?.protection === 'Frozen' || seen?.protection === 'Staged') && (seen.generation ?? 0) > 1
      ? true
      : undefined
  })
}

interface Crash {
  readonly failover: LastFailover
  /** Name of the pod whose process has ended. */
  readonly pod: string
  /** By performance.now. */
  readonly killedAt: number
}

/** Ends the process of the primary. Resolves after the failover. */
async function crash(stage: Stage, screen: Screen, ref: SetRef, signal: AbortSignal): Promise<Crash> {
  const { api, namespace } = stage
  const { pod } = await until(stage, 'the primary', signal, () => slotOf(stage, ref, signal))
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}:8080/proxy/crash`
  screen.lines(
    'Now its process ends at once, without notice.',
    styled.command(`kubectl create --raw ${path} -f /dev/null`),
    '',
  )
  const killedAt = performance.now()
  // This request gets no answer, because it ends the process.
  await api.request('POST', path, { signal }).catch((error: unknown) => {
    if (!isKubeError(error)) throw error
  })
  const failover = await until(stage, 'the failover', signal, async () => {
    const { status } = await api.get(backupPodSets, ref, { signal })
    return status?.lastFailover?.from === pod ? status.lastFailover : undefined
  })
  return { failover, pod, killedAt }
}

/** Tells how the client saw the failover. @returns the deviations */
function compareCounts(
  screen: Screen,
  { failover, pod, killedAt }: Crash,
  probes: readonly Probe[],
): string[] {
  const now = performance.now()
  const { failed, gapMs } = seenBetween(probes, killedAt, now)
  const last = counts(probes.filter(({ at }) => at <= killedAt)).at(-1) ?? 0
  const after = counts(probes.filter(({ at }) => at > killedAt))
  const lowest = Math.min(...after)
  screen.lines(
    `  ${pod} → ${failover.to}, serving after ${seconds(failover.seconds * 1000)}, with a state ${seconds((failover.stateAge ?? 0) * 1000)} old.`,
    `  The client counted ${last} before, and continued from ${lowest}: ${failed} requests failed, the longest silence was ${seconds(gapMs)}.`,
  )
  const wrong: string[] = []
  // Allowed loss: the age of the state in requests, and as much again for a slow machine.
  const mayLose = Math.ceil(((failover.stateAge ?? 0) * 1000 * 2 + 2_000) / 50)
  if (lowest < Math.max(2, last - mayLose)) wrong.push(`memory: the count fell from ${last} to ${lowest}`)
  if (failover.reason !== 'Died') wrong.push(`memory: the reason of the failover is ${failover.reason}`)
  return wrong
}

const counts = (probes: readonly Probe[]): number[] =>
  probes.flatMap(({ count }) => (count === undefined ? [] : [count]))

const countLine = (probes: readonly Probe[]): string[] => {
  const count = counts(probes).at(-1)
  return count === undefined ? [] : [`  the count is ${styled.good(String(count))}`]
}

/**
 * Fails early, because waiting would be pointless.
 * @throws Error if a pod of the set waits for an image that its node cannot get
 */
async function imagesAreThere({ api, namespace }: Stage, set: string, signal: AbortSignal): Promise<void> {
  const { items } = await api.list(pods, { namespace, labelSelector: `${labels.set}=${set}` }, { signal })
  for (const { metadata, status } of items)
    for (const { image, state } of [
      ...(status?.initContainerStatuses ?? []),
      ...(status?.containerStatuses ?? []),
    ])
      if (
        /^(?:ErrImagePull|ImagePullBackOff|ErrImageNeverPull|InvalidImageName)$/.test(
          state?.waiting?.reason ?? '',
        )
      )
        throw new Error(
          `${metadata.name} waits for the image ${image}, which its node cannot get: ${state?.waiting?.message ?? state?.waiting?.reason}`,
        )
}

const ignoreMissing = (error: unknown): undefined => {
  if (!isKubeError(error, 'NotFound')) throw error
  return undefined
}

const until = <T>(
  { patienceMs }: Stage,
  what: string,
  signal: AbortSignal,
  ask: () => Promise<T | undefined>,
): Promise<T> => waitUntil(what, ask, { patienceMs, pollMs, signal })
