import { gateContainerName, isAtGate } from '../../src/api/gate.ts'
import type { Bench, BenchContext } from '../bench.ts'
import { inNamespace } from '../namespace.ts'
import { wokenAt } from '../observe/gate-log.ts'
import { readLog } from '../observe/operator-log.ts'
import { kindOf } from '../observe/state.ts'
import { wakeningOf } from '../observe/wakening.ts'
import type { Baselines, Sampler } from '../report.ts'
import { type ByHandRig, createByHandRig } from './by-hand.ts'
import { type Controller, ownController } from './controller.ts'
import { createDeploymentRig, type DeploymentRig } from './deployment.ts'
import { type Operation, operations, paperFigures, peerFigures } from './operations.ts'
import { startPeer } from './peer.ts'
import { createSetRig, type SetTrial } from './set.ts'

export const paper: Bench = {
  name: 'paper',
  title:
    "the paper's operations E1-E4, beside its figures, its controller's on a cluster like this, a Deployment and pods made by hand",
  trials: 30,
  needs: ['operator'],
  before: async (context, samples) => {
    if (context.peer !== undefined) await measurePeer(context, context.peer, samples)
  },
  run: async (context, samples) => {
    await inNamespace(context.api, 'bench-paper', context.signal, namespace =>
      measure(context, namespace, samples),
    )
    return samples.report('paper', baselines(context.peer !== undefined))
  },
}

const ofPeer = ', peer'

/**
 * Performs the same operations with the paper's own controller, on the same cluster before the operator is installed.
 */
async function measurePeer(context: BenchContext, checkout: string, samples: Sampler): Promise<void> {
  const peer = await startPeer(context, checkout)
  try {
    await inNamespace(context.api, 'bench-peer', context.signal, async namespace => {
      const others = await createOthers(context, peer.controller, namespace)
      for (let round = 1; round <= context.n; round++) {
        const line: string[] = []
        const over = new AbortController()
        const signal = AbortSignal.any([context.signal, over.signal])
        // The peer retries deleted sets for ever, with growing delays: a new set of the same name would have to wait.
        const ref = { namespace, name: `web-${round}` }
        const set = await createSetRig({ ...context, signal }, peer.controller, ref)
        const trials: Performed[] = []
        for (const operation of operations) {
          const trial = await set.perform(operation)
          trials.push([operation, trial])
          noteTimes(operation, trial, samples, ofPeer)
          samples.add(`${operation.name} set writes${ofPeer}`, 'writes', trial.statusWrites)
          line.push(`${operation.name} ${seconds(trial.inPlace - trial.requested)}`)
        }
        await set.clear()
        over.abort()
        await performOthers(others, trials, samples, ofPeer)
        context.say(`peer ${round}/${context.n}: ${line.join(', ')}`)
      }
    })
  } finally {
    await peer.stop()
  }
}

async function measure(context: BenchContext, namespace: string, samples: Sampler): Promise<void> {
  const controller = ownController(context)
  const set = await createSetRig(context, controller, { namespace, name: 'web' })
  const others = await createOthers(context, controller, namespace)
  for (let round = 1; round <= context.n; round++) {
    const line: string[] = []
    const trials: Performed[] = []
    for (const operation of operations) {
      const trial = await set.perform(operation)
      trials.push([operation, trial])
      noteTrial(operation, trial, samples)
      await noteWakenings(context, namespace, operation, trial, samples)
      line.push(`${operation.name} ${seconds(trial.inPlace - trial.requested)}`)
    }
    await set.clear()
    await performOthers(others, trials, samples)
    context.say(`${round}/${context.n}: ${line.join(', ')}`)
  }
}

type Performed = readonly [Operation, SetTrial]

interface Others {
  readonly deployment: DeploymentRig
  readonly byHand: ByHandRig
}

const createOthers = async (
  context: BenchContext,
  controller: Controller,
  namespace: string,
): Promise<Others> => ({
  deployment: await createDeploymentRig(context, namespace),
  byHand: await createByHandRig(context, controller, namespace),
})

/**
 * For either controller: measures how long the cluster in its present state needs for the nearest equivalent without
 * one.
 */
async function performOthers(
  { deployment, byHand }: Others,
  trials: readonly Performed[],
  samples: Sampler,
  of = '',
): Promise<void> {
  for (const [operation, { pods }] of trials) {
    if (operation.action !== 'create') continue
    samples.add(`${operation.name} by hand${of}`, 's', (await byHand.perform(operation, pods)) / 1000)
  }
  for (const operation of operations) {
    const ms = await deployment.perform(operation)
    samples.add(`${operation.name} Deployment${of}`, 's', ms / 1000)
  }
  await deployment.clear()
}

function noteTimes({ name }: Operation, trial: SetTrial, samples: Sampler, of = ''): void {
  samples.add(`${name} controller${of}`, 's', (trial.lastWrite - trial.passBegan) / 1000)
  samples.add(`${name} total${of}`, 's', (trial.inPlace - trial.requested) / 1000)
}

function noteTrial(operation: Operation, trial: SetTrial, samples: Sampler): void {
  const { name, action } = operation
  const note = (what: string, from: number, to: number) =>
    samples.add(`${name} ${what}`, 's', (to - from) / 1000)
  noteTimes(operation, trial, samples)
  if (trial.server !== undefined) {
    note('controller, by the audit log', trial.passBegan, trial.server.lastAnswer)
    samples.add(`${name} split: pod writes at the API server`, 's', trial.server.busyMs / 1000)
  }
  samples.add(`${name} status writes`, 'writes', trial.statusWrites)
  samples.add(`${name} pod writes`, 'writes', trial.podWrites)
  note('split: request to first pass', trial.requested, trial.passBegan)
  note('split: last pod write to in place', trial.lastWrite, Math.max(trial.inPlace, trial.lastWrite))
  if (action !== 'delete') return
  note('split: request to deletion accepted', trial.requested, trial.accepted)
  const promoted = trial.writes.find(({ type, pod }) => type === 'relabelled' && kindOf(pod) === 'primary')
  if (promoted === undefined) throw new Error(`${name}: no pod became a primary`)
  note('split: deletion accepted to label moved', trial.accepted, Math.max(promoted.at, trial.accepted))
  const created = trial.writes.find(({ type }) => type === 'created')
  const gated = trial.events.find(
    ({ object }) => object.metadata.uid === created?.pod.metadata.uid && isAtGate(object),
  )
  if (created === undefined || gated === undefined) throw new Error(`${name}: no cold backup was made`)
  note('split: cold backup created to its gate running', created.at, gated.at)
}

/** Notes the steps of each woken cold backup: they make up the rest of the total. */
async function noteWakenings(
  { api }: BenchContext,
  namespace: string,
  { name }: Operation,
  { writes, events }: SetTrial,
  samples: Sampler,
): Promise<void> {
  const converted = writes.flatMap(write =>
    write.type === 'relabelled' && write.from === 'coldbackup' ? [write] : [],
  )
  for (const { at, pod } of converted) {
    const { uid, name: podName } = pod.metadata
    const log = await readLog(api, { namespace, name: podName, container: gateContainerName }, 0)
    const woken = wokenAt(log)
    const wakening = wakeningOf(uid, woken, events)
    const note = (what: string, from: number, to: number) =>
      samples.add(`${name} split: ${what}`, 's', (to - from) / 1000)
    note('gate woken to label moved', wakening.woken, Math.max(at, wakening.woken))
    note('gate woken to kubelet noticed', wakening.woken, wakening.noticed)
    note('kubelet noticed to Ready', wakening.noticed, wakening.ready)
  }
}

function baselines(hasPeer: boolean): Baselines {
  return Object.fromEntries(
    operations.flatMap(({ name, action }) => {
      const peer = (what: 'controller' | 'total' | 'writes', measured: string) => ({
        'peer controller': peerFigures[name][what],
        ...(hasPeer ? { 'peer controller, same run': { case: `${name} ${measured}${ofPeer}` } } : {}),
      })
      return [
        [`${name} controller`, { paper: paperFigures[name].controller, ...peer('controller', 'controller') }],
        [
          `${name} total`,
          {
            paper: paperFigures[name].total,
            ...peer('total', 'total'),
            Deployment: { case: `${name} Deployment` },
            ...(action === 'create' ? { 'by hand': { case: `${name} by hand` } } : {}),
          },
        ],
        [`${name} status writes`, peer('writes', 'set writes')],
        ...(hasPeer ? besidePeer(name, action) : []),
      ]
    }),
  )
}

/**
 * Baselines without a controller that were measured while the peer was installed instead of the operator and its
 * agents.
 */
function besidePeer(
  name: string,
  action: Operation['action'],
): readonly (readonly [string, Baselines[string]])[] {
  const others = [`${name} Deployment`, ...(action === 'create' ? [`${name} by hand`] : [])]
  return others.map(other => [other, { 'beside the peer': { case: `${other}${ofPeer}` } }])
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`
