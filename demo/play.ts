/** Plays one operation on the screen and checks its result. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { BackupPodSet } from '../src/api/backuppodset.ts'
import type { Cast } from './cast.ts'
import { deviations, listingDeviations } from './check.ts'
import { isSettled, type Numbers } from './picture.ts'
import { podTable, type Screen, seconds, styled } from './screen.ts'
import type { Stage } from './stage.ts'
import type { Operation } from './story.ts'
import { seenBetween, type Traffic, trafficLine } from './traffic.ts'

export interface Theatre {
  readonly stage: Stage
  readonly screen: Screen
  readonly cast: Cast
  readonly set: BackupPodSet
  /** Absent until the first primary serves. */
  readonly traffic: Traffic | undefined
  readonly signal: AbortSignal
}

export interface Played {
  readonly title: string
  /** From the sending of the request until numbers match and every pod is in place. */
  readonly ms: number
  readonly paper: Operation['paper']
  readonly deviations: readonly string[]
}

/** How long the listing and the Service may lag behind the pods, ms. */
const lagMs = 10_000

export async function play(operation: Operation, theatre: Theatre): Promise<Played> {
  const { stage, screen, cast, set, traffic, signal } = theatre
  const { title, tells, wish, paper } = operation
  const before = cast.rows()
  screen.lines('', styled.title(title), ...tells, styled.command(operation.command(before)), '')
  const started = performance.now()
  let ended: number | undefined
  const frame = () => [
    ...podTable(cast.rows()),
    trafficLine(traffic?.probes ?? []),
    `  ${styled.title(seconds((ended ?? performance.now()) - started))}`,
  ]
  using live = screen.live(frame)
  const unfollow = cast.follow(text =>
    live.log(styled.dim(`  ${seconds(performance.now() - started).padStart(9)}  ${text}`)),
  )
  try {
    const { namespace, api } = stage
    const acted = await operation.act({ api, namespace, set, rows: before, signal })
    await cast.until(title, rows => acted.begun(rows) && isSettled(rows, wish), stage.patienceMs, signal)
    ended = performance.now()
    const after = cast.rows()
    const wrong = [
      ...deviations(set.metadata.name, before, after, operation.expected),
      ...(acted.check?.(after) ?? []),
      ...(await listing(theatre, wish)),
    ]
    return { title, ms: ended - started, paper, deviations: wrong }
  } finally {
    unfollow()
  }
}

/** Runs `kubectl get bps` until it agrees with the pods or its time is over. */
async function listing({ stage, set, signal }: Theatre, wish: Numbers): Promise<string[]> {
  const { name } = set.metadata
  const deadline = performance.now() + lagMs
  for (;;) {
    const output = await stage.kubectl('-n', stage.namespace, 'get', 'bps', name)
    const wrong = listingDeviations(output, name, stage.namespace, wish)
    if (wrong.length === 0 || performance.now() > deadline) return wrong
    await sleep(200, undefined, { signal })
  }
}

/** Describes a client's view of an operation, and the reason for failures if there were any. */
export function clientLines(traffic: Traffic, from: number, to: number): string[] {
  const { answered, failed, gapMs } = seenBetween(traffic.probes, from, to)
  const seen = `A client of the Service saw ${answered} answers and ${failed} failures meanwhile, and waited at most ${seconds(gapMs)} for the next answer.`
  if (failed === 0) return [seen]
  return [
    seen,
    styled.dim(
      "Nodes keep sending to a pod that ends until kube-proxy has written its rules, at most once a second; the paper's",
    ),
    styled.dim(
      'nginx does not wait for that. A preStop sleep in the template does: lifecycle: {preStop: {sleep: {seconds: 2}}}',
    ),
  ]
}
