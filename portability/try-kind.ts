/** One kind of node: it joins the cluster, its agent checks it, and the trials run there. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { machineLine } from '../bench/machine.ts'
import { runToEnd } from '../playground/exec.ts'
import { until } from '../playground/until.ts'
import { type NodeReport, nodeReports, parseReport } from '../src/api/node-report.ts'
import type { Progress, Step } from '../src/terminal/progress.ts'
import { keepEvidence } from './evidence.ts'
import { type NodeKind, nodeNames } from './kinds.ts'
import { type GuestNode, joinNode, patience } from './node.ts'
import type { KindResult, NodeFacts, Outcome } from './results.ts'
import { ensureRootDisk } from './root-disk.ts'
import type { Stage } from './stage.ts'
import { runTrial, type Success, type Trial, type TrialName } from './trials.ts'

export interface TryOptions {
  readonly stage: Stage
  readonly trials: readonly Trial[]
  readonly commit: string
  readonly progress: Progress
  readonly signal: AbortSignal
}

export async function tryKind(kind: NodeKind, options: TryOptions): Promise<KindResult> {
  const { stage, commit, progress, signal } = options
  const about = {
    kind: kind.name,
    title: kind.title,
    date: new Date().toISOString().slice(0, 10),
    commit,
    machine: machineLine(),
  }
  const root = await ensureRootDisk(kind, { progress, signal })
  const nothing = { trials: {}, labels: [], doctor: [] }
  await using joined = new AsyncDisposableStack()
  const joining = nodeNames(kind).map(async (name, number) =>
    joined.use(await joinNode({ ...stage, kind, name, number, root, progress, signal })),
  )
  const nodes = await attempt(signal, () => allOf(joining))
  if (nodes.kind === 'failed') return { ...about, ...nothing, canary: nodes }
  const seen = await attempt(signal, () => allOf(nodes.value.map(node => examined(node, options))))
  const [first] = seen.kind === 'ok' ? seen.value : []
  const canary = seen.kind === 'ok' ? worstOf(seen.value.map(each => each.canary)) : seen
  if (canary.kind !== 'ok') for (const node of nodes.value) await keepEvidence(stage, node, 'canary')
  const { outcomes, labels } = await runTrials(canary, nodes.value, options)
  return {
    ...about,
    ...(first && { facts: first.facts }),
    canary,
    trials: outcomes,
    labels,
    doctor: await doctorOn(stage, nodes.value, signal),
  }
}

/** Waits for all of them, also after a failure, so that no work continues when this rejects. */
async function allOf<T>(work: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(work)
  return Promise.all(work)
}

const examined = (
  node: GuestNode,
  { stage, progress }: TryOptions,
): Promise<{ canary: Outcome; facts: NodeFacts }> =>
  progress.step(`checks of the agent on ${node.name}`, async step => {
    const { canary, report } = await checked(stage, node, step)
    return { canary, facts: await factsOf(node, report) }
  })

/** Returns the first outcome that is not `ok`, or the slowest one. */
function worstOf(outcomes: readonly Outcome[]): Outcome {
  const seconds = outcomes.map(outcome => (outcome.kind === 'ok' ? outcome.seconds : 0))
  return (
    outcomes.find(({ kind }) => kind !== 'ok') ?? { kind: 'ok', seconds: Math.round(Math.max(...seconds)) }
  )
}

async function runTrials(
  canary: Outcome,
  nodes: readonly GuestNode[],
  options: TryOptions,
): Promise<{ outcomes: KindResult['trials']; labels: readonly string[] }> {
  const outcomes: Partial<Record<TrialName, Outcome>> = {}
  const labels = new Set<string>()
  for (const trial of options.trials) {
    if (canary.kind !== 'ok') {
      outcomes[trial.name] = { kind: 'refused', reason: 'its nodes are not ready for memory' }
      continue
    }
    const tried = await attempt(options.signal, () => tryIt(trial, nodes, options))
    outcomes[trial.name] =
      tried.kind === 'ok' ? { kind: 'ok', seconds: Math.round(tried.value.seconds) } : tried
    if (tried.kind === 'ok' && tried.value.label !== '') labels.add(tried.value.label)
  }
  return { outcomes, labels: [...labels].sort() }
}

const tryIt = (
  trial: Trial,
  nodes: readonly GuestNode[],
  { stage, progress, signal }: TryOptions,
): Promise<Success> =>
  progress.step(`${trial.title} on ${nodes.map(({ name }) => name).join(', ')}`, async step => {
    const { api, namespace } = stage
    const failed = async () => {
      if (signal.aborted) return
      for (const node of nodes) await keepEvidence(stage, node, trial.name)
    }
    const alive = AbortSignal.any(nodes.map(node => node.alive))
    const success = await runTrial({ api, namespace, nodes, say: step.detail, failed, signal: alive }, trial)
    step.detail(`answered after ${success.seconds.toFixed(1)} s`)
    return success
  })

type Attempt<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'failed'; readonly reason: string }

/** A failure is a result; only an interruption ends the run. */
async function attempt<T>(signal: AbortSignal, work: () => Promise<T>): Promise<Attempt<T>> {
  try {
    return { kind: 'ok', value: await work() }
  } catch (error) {
    signal.throwIfAborted()
    const causes: string[] = []
    for (let at: unknown = error; at instanceof Error; at = at.cause) causes.push(at.message)
    return { kind: 'failed', reason: causes.length === 0 ? String(error) : causes.join(': ') }
  }
}

/** Checks of a report that need more than one try on an emulated node have this time. */
const readyWithinMs = 300_000

/** Waits until the node is ready for memory, or until its checks have had time enough to pass. */
async function checked(
  { api }: Stage,
  { name, alive: signal }: GuestNode,
  step: Step,
): Promise<{ canary: Outcome; report: NodeReport }> {
  const began = performance.now()
  const read = async (): Promise<NodeReport | undefined> => {
    const found = (await api.list(nodeReports, {}, { signal })).items.find(it => it.metadata.name === name)
    return found === undefined ? undefined : parseReport(found)
  }
  const hasChecks = (report: NodeReport | undefined): boolean =>
    report?.status?.checks.some(check => check.name === 'canary') === true
  const first = await until(
    `a report of ${name} with its checks`,
    async () => {
      const report = await read()
      return hasChecks(report) ? report : undefined
    },
    { ...patience, signal },
  )
  const failedChecks = (report: NodeReport): string =>
    (report.status?.checks ?? [])
      .filter(({ ok }) => !ok)
      .map(check => `${check.name}: ${check.message}`)
      .join('; ')
  let last = first
  const end = performance.now() + readyWithinMs
  while (last.status?.ready !== true && performance.now() < end) {
    step.detail(failedChecks(last))
    await sleep(1000, undefined, { signal })
    last = (await read()) ?? last
  }
  const canary = last.status?.checks.find(check => check.name === 'canary')
  step.detail(last.status?.ready === true ? (canary?.message ?? '') : failedChecks(last))
  if (last.status?.ready !== true)
    return { canary: { kind: 'failed', reason: failedChecks(last) }, report: last }
  return { canary: { kind: 'ok', seconds: (performance.now() - began) / 1000 }, report: last }
}

async function factsOf({ node, inNode }: GuestNode, { status }: NodeReport): Promise<NodeFacts> {
  const info = node.status?.nodeInfo
  const firstLine = async (argv: readonly string[]): Promise<string> =>
    (await inNode(argv)).split('\n')[0] ?? ''
  return {
    os: info?.osImage ?? '',
    kernel: info?.kernelVersion ?? '',
    cgroups: status?.checks.find(check => check.name === 'cgroups')?.message ?? '',
    systemd: versionIn(await firstLine(['systemctl', '--version'])),
    runtime: info?.containerRuntimeVersion ?? '',
    runc: versionIn(await firstLine(['runc', '--version'])),
    kubelet: info?.kubeletVersion ?? '',
    securityModules: (await inNode(['cat', '/sys/kernel/security/lsm'])).trim(),
  }
}

/** Returns the version in a line such as `systemd 257 (257.13-1~deb13u1)` or `runc version 1.1.15+ds1`. */
export const versionIn = (line: string): string =>
  /\((\d[\w.]*)/.exec(line)?.[1] ?? /\s(\d[\w.]*)/.exec(line)?.[1] ?? line

const program = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url))

/** Returns the broken findings of doctor about the nodes. */
async function doctorOn(
  { cluster: { kubeconfigPath } }: Stage,
  nodes: readonly GuestNode[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const argv = [process.execPath, program, '--kubeconfig', kubeconfigPath, 'doctor', '--output', 'json']
  const { stdout } = await runToEnd(argv, { signal })
  return nodes.flatMap(({ name }) => findingsAbout(stdout, name))
}

interface Finding {
  readonly about: string
  readonly verdict: string
  readonly message: string
}

/** Returns the broken findings about a node in the output of `doctor --output json`. */
export function findingsAbout(text: string, node: string): readonly string[] {
  const { findings } = JSON.parse(text) as { readonly findings: readonly Finding[] }
  return findings
    .filter(({ about, verdict }) => verdict === 'broken' && about.split(' ')[0] === node)
    .map(({ about, message }) => `${about}: ${message}`)
}
