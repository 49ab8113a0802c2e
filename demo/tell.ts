/** The story from its first scene to the summary. */
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { parse } from 'yaml'
import { type BackupPodSet, backupPodSets } from '../src/api/backuppodset.ts'
import { isKubeError } from '../src/kube/errors.ts'
import { type Service, services } from '../src/kube/resources.ts'
import { type Cast, watchCast } from './cast.ts'
import { serviceDeviations, strayRequests } from './exposure.ts'
import { tellMemory } from './memory.ts'
import { clientLines, type Played, play } from './play.ts'
import { type Screen, seconds, styled } from './screen.ts'
import type { Stage } from './stage.ts'
import { type Operation, operations } from './story.ts'
import { type Traffic, trafficLine } from './traffic.ts'

interface Telling {
  /** Do not wait for a key between the scenes. */
  readonly yes: boolean
  /** The cluster outlives the story, so the summary says how to continue. */
  readonly stays: boolean
}

/** @returns descriptions of all deviations from the story */
export async function tell(
  stage: Stage,
  { yes, stays }: Telling,
  screen: Screen,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const set = await paperSet()
  const { name } = set.metadata
  await using cast = await watchCast(stage.api, stage.namespace, name, signal)
  await clear(stage, cast, name, signal)
  const service = await ensureService(stage, name, signal)
  const next = () => (yes ? Promise.resolve() : ask('Enter to continue ', signal))

  const theatre = { stage, screen, cast, set, signal }
  const played: Played[] = [await play(operations.create, { ...theatre, traffic: undefined })]
  await next()
  await using traffic = stage.traffic(service)
  const wrong = await watchTraffic(stage, service, cast, traffic, screen, signal)
  const steps: Operation[] = [operations.failure, operations.scaleUp, operations.scaleDown]
  for (const operation of steps) {
    await next()
    const from = performance.now()
    played.push(await play(operation, { ...theatre, traffic }))
    wrong.push(...(await serviceDeviations(stage, name, cast, signal)))
    wrong.push(...(await strayRequests(stage, cast, signal)))
    screen.lines(...clientLines(traffic, from, performance.now()))
    if (operation === operations.failure) screen.lines(...(await failoverLine(stage, name, signal)))
  }
  await next()
  wrong.push(...(await tellMemory(stage, screen, next, signal)))
  wrong.push(...played.flatMap(({ title, deviations }) => deviations.map(it => `${title}: ${it}`)))
  summary(screen, played)
  if (stays) farewell(screen, stage)
  return wrong
}

async function paperSet(): Promise<BackupPodSet> {
  return parse(await readFile(new URL('../samples/paper.yaml', import.meta.url), 'utf8')) as BackupPodSet
}

/** Deletes the set of an earlier demo. */
async function clear(stage: Stage, cast: Cast, name: string, signal: AbortSignal): Promise<void> {
  const ref = { namespace: stage.namespace, name }
  try {
    await stage.api.delete(backupPodSets, ref, {}, { signal })
  } catch (error) {
    if (!isKubeError(error, 'NotFound')) throw error
  }
  await cast.until('the pods of an earlier demo end', rows => rows.length === 0, stage.patienceMs, signal)
}

/** Applies the paper's Service: primaries only. */
async function ensureService(stage: Stage, name: string, signal: AbortSignal): Promise<Service> {
  return stage.api.patch(
    services,
    { namespace: stage.namespace, name },
    {
      type: 'apply',
      body: {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name },
        spec: { selector: { app: 'nginx', type: 'primary' }, ports: [{ port: 80, targetPort: 80 }] },
      },
    },
    { fieldManager: 'understudy-demo', force: true, signal },
  )
}

const watchedProbes = 60

async function watchTraffic(
  stage: Stage,
  service: Service,
  cast: Cast,
  traffic: Traffic,
  screen: Screen,
  signal: AbortSignal,
): Promise<string[]> {
  screen.lines(
    '',
    styled.title('Traffic through a Service'),
    'Its selector is app=nginx, type=primary. A client opens a connection every 50 ms from now on.',
    styled.command(`kubectl get service ${service.metadata.name} -o wide`),
    '',
  )
  const started = performance.now()
  {
    using _ = screen.live(() => [trafficLine(traffic.probes)])
    // The first requests may precede the nodes' rules for the Service.
    const answered = () => traffic.probes.filter(({ error }) => error === undefined).length
    while (answered() < watchedProbes && performance.now() - started < stage.patienceMs)
      await sleep(50, undefined, { signal })
  }
  const first = traffic.probes.findIndex(({ error }) => error === undefined)
  const failed = traffic.probes.slice(first).filter(({ error }) => error !== undefined)
  return [
    ...(first < 0 ? ['no request through the Service got an answer'] : []),
    ...(failed[0] === undefined ? [] : [`a request failed while nothing changed: ${failed[0].error}`]),
    ...(await serviceDeviations(stage, service.metadata.name, cast, signal)),
    ...(await strayRequests(stage, cast, signal)),
  ]
}

/** The operator's own report of the failover. */
async function failoverLine(stage: Stage, name: string, signal: AbortSignal): Promise<string[]> {
  const { status } = await stage.api.get(backupPodSets, { namespace: stage.namespace, name }, { signal })
  const failover = status?.lastFailover
  if (failover === undefined) return []
  return [
    `The operator: slot ${failover.slot}, ${failover.from} → ${failover.to}, ${seconds(failover.seconds * 1000)} from seeing the loss to the accepted label.`,
  ]
}

function summary(screen: Screen, played: readonly Played[]): void {
  const width = Math.max(...played.map(({ title }) => title.length))
  screen.lines(
    '',
    styled.title('Times, from the request until the numbers are right and every pod is in place'),
    styled.dim(`  ${''.padEnd(width)}      here    in the paper`),
    ...played.map(
      ({ title, ms, paper }) =>
        `  ${title.padEnd(width)}  ${styled.good(seconds(ms))}    ${paper.seconds.toFixed(3)} s${paper.note === undefined ? '' : ` ${paper.note}`}`,
    ),
    styled.dim('  Other machines, one run each. On this machine, against a controller like the paper’s:'),
    styled.dim('  npm run bench -- paper'),
  )
}

function farewell(screen: Screen, stage: Stage): void {
  screen.lines(
    '',
    styled.title('The cluster is still up. Continue with'),
    ...stage.goOn.map(line => styled.command(line)),
    '',
    styled.title('Take it down with'),
    styled.command(stage.tearDown),
  )
}

async function ask(question: string, signal: AbortSignal): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  // In this mode readline, not the process, receives Ctrl-C.
  terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  try {
    await terminal.question(styled.dim(question), { signal })
    // Erase the answered question's line.
    process.stdout.write('\u001b[1A\u001b[2K')
  } finally {
    terminal.close()
  }
}
