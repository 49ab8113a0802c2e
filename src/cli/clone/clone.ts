import { type BackupPodSet, backupPodSets } from '../../api/backuppodset.ts'
import { cloneSpecOf } from '../../api/clone-spec.ts'
import { labels } from '../../api/labels.ts'
import { type MigratingPod, type MigratingPodSpec, migratingPods } from '../../api/migrating-pod.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import { conditionTypes } from '../../api/reasons.ts'
import { isKubeError } from '../../kube/errors.ts'
import { apiVersionOf, type Pod, pods } from '../../kube/resources.ts'
import { CliError, exitCodes } from '../failure.ts'
import { answer } from '../output/answer.ts'
import type { Session } from '../session.ts'
import { type FollowedWorld, followWorld } from '../world.ts'

export interface CloneOptions {
  /** Name of the MigratingPod to create. */
  readonly name: string
  /** Seconds. */
  readonly timeout: number
}

/**
 * Creates a MigratingPod that begins with a copy of the memory of a pod, in its template, and waits until it serves.
 *
 * @throws CliError with exit code 4 if it does not serve by then: the operator continues; CliError, KubeError.
 */
export async function clone(session: Session, pod: string, { name, timeout }: CloneOptions): Promise<void> {
  const { api, namespace, call } = session
  const spec = await specFor(session, pod)
  const body = {
    ...{ apiVersion: apiVersionOf(migratingPods), kind: migratingPods.kind },
    metadata: { name },
    spec,
  }
  await api.create(migratingPods, body, { namespace, ...call })
  await followWorld(session, { namespace, set: name }, world =>
    untilCloned(session, world, { name, pod, timeoutMs: timeout * 1000 }),
  )
}

async function specFor({ api, namespace, call }: Session, pod: string): Promise<MigratingPodSpec> {
  const found = await api.get<Pod>(pods, { namespace, name: pod }, call)
  const name = found.metadata.labels?.[labels.set]
  if (name === undefined || kindLabelOf(found) !== 'primary')
    throw new CliError(`pod ${pod} is no primary of a BackupPodSet, and not the pod of a MigratingPod`, {
      advice: 'only these have memory that is saved: `kubectl understudy status` lists them',
    })
  const absent = (error: unknown) => {
    if (isKubeError(error, 'NotFound')) return undefined
    throw error
  }
  const moving = await api.get<MigratingPod>(migratingPods, { namespace, name }, call).catch(absent)
  const { spec } = moving ?? (await api.get<BackupPodSet>(backupPodSets, { namespace, name }, call))
  if (moving === undefined && spec.checkpoint === undefined)
    throw new CliError(`the memory of pod ${pod} is not saved`, {
      advice: `add spec.checkpoint to the BackupPodSet ${name}`,
    })
  return cloneSpecOf(spec, pod)
}

interface Goal {
  readonly name: string
  readonly pod: string
  readonly timeoutMs: number
}

export async function untilCloned(
  session: Session,
  world: FollowedWorld,
  { name, pod, timeoutMs }: Goal,
): Promise<void> {
  const { progress } = session
  let why = 'the operator has not seen it'
  const set = await progress.step(`clone ${pod}`, step =>
    world.until(
      now => {
        const set = now.sets.find(({ metadata }) => metadata.name === name)
        const of = (wanted: string) => set?.status?.conditions?.find(({ type }) => type === wanted)
        const words = [of(conditionTypes.cloned), of(conditionTypes.ready)]
        const open = words.find(word => word !== undefined && word.status !== 'True')
        if (open !== undefined) {
          why = `${open.reason}: ${open.message}`
          step.detail(open.message)
        }
        return words.every(word => word?.status === 'True') ? set : undefined
      },
      timeoutMs,
      () =>
        new CliError(`${name} does not serve within --timeout: ${why}`, {
          advice: `the operator continues; \`kubectl understudy status ${name}\` shows what it waits for, and \`kubectl delete mpod ${name}\` calls it off`,
          exitCode: exitCodes.late,
        }),
    ),
  )
  const slots = set.status?.slots ?? []
  answer(session, 'Clone', { name, cloneOf: pod, slots }, () =>
    [
      `${name} runs with the memory of ${pod}`,
      ...slots.map(each => `  ${each.pod} on ${each.node ?? 'no node'}`),
    ].join('\n'),
  )
}
