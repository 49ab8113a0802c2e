import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type BackupPodSet, backupPodSets } from '../../src/api/backuppodset.ts'
import { labels } from '../../src/api/labels.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { namespaces, type Pod, pods } from '../../src/kube/resources.ts'
import { type FaultProxy, type Match, startFaultProxy } from './fault-proxy.ts'
import { startFakeKubelet } from './lib/fake-kubelet.ts'
import { type OperatorProcess, startOperator, untilOver } from './lib/operator-process.ts'
import { adminKubeconfig } from './lib/plane.ts'
import { type Counts, numbers, watchCounts } from './lib/pod-counts.ts'

let api: Api
let dir: string
beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  dir = await mkdtemp(join(tmpdir(), 'understudy-crashes-'))
})
afterAll(async () => {
  await api.close()
  await rm(dir, { recursive: true })
})

const isWrite: Match = ({ method, path }) => method !== 'GET' && /\/(pods|backuppodsets)\b/.test(path)

interface Stage {
  most: Counts['most']
  readonly namespace: string
  readonly proxy: FaultProxy
  readonly kubeconfig: string
  start(): OperatorProcess
}

/** Creates a namespace with a fake kubelet, and a proxy that only the operators use. */
async function onStage(run: (stage: Stage) => Promise<void>) {
  const namespace = `crash-${randomBytes(4).toString('hex')}`
  await api.create(namespaces, { metadata: { name: namespace } })
  const proxy = await startFaultProxy(await loadConnection({ kubeconfig: adminKubeconfig() }))
  const kubeconfig = join(dir, namespace)
  await writeFile(kubeconfig, proxy.kubeconfig)
  const operators: OperatorProcess[] = []
  try {
    await using _kubelet = startFakeKubelet(api, namespace)
    await using numbersSeen = watchCounts(api, namespace)
    await run({
      most: numbersSeen.most,
      namespace,
      proxy,
      kubeconfig,
      start: () => {
        const operator = startOperator(kubeconfig, namespace, '--no-leader-elect')
        operators.push(operator)
        return operator
      },
    })
    await api.delete(backupPodSets, { namespace, name: 'set' })
  } finally {
    for (const operator of operators) await operator[Symbol.asyncDispose]()
    await proxy.close()
  }
}

const livePods = async (namespace: string): Promise<Pod[]> =>
  (await api.list(pods, { namespace })).items.filter(pod => pod.metadata.deletionTimestamp === undefined)

async function settled(namespace: string, want: number[]): Promise<Pod[]> {
  return vi.waitFor(
    async () => {
      const { status, metadata } = await api.get<BackupPodSet>(backupPodSets, { namespace, name: 'set' })
      const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status
      const all = await livePods(namespace)
      if (
        ready !== 'True' ||
        status?.observedGeneration !== metadata.generation ||
        numbers(all).join() !== want.join()
      )
        throw new Error(`${numbers(all)} for ${want}: ${JSON.stringify(status?.conditions)}`)
      return all
    },
    { timeout: 300_000, interval: 50 },
  )
}

/**
 * Checks the invariants of every state that our own writes can reach: never more pods than wished, and a distinct slot
 * for each primary.
 */
function check(stage: Stage, all: readonly Pod[], [primaries = 0, hot = 0, cold = 0]: number[]) {
  const wish = [primaries, hot, hot + cold]
  stage.most().forEach((most, i) => {
    const which = most.map(({ metadata }) =>
      JSON.stringify([metadata.name, metadata.resourceVersion, metadata.labels]),
    )
    expect(most.length, which.join('\n')).toBeLessThanOrEqual(wish[i] ?? 0)
  })
  const slots = all.flatMap(pod =>
    pod.metadata.labels?.[labels.type] === 'primary' ? [pod.metadata.labels[labels.slot]] : [],
  )
  expect(new Set(slots).size).toBe(slots.length)
}

const create = (namespace: string) =>
  api.create(
    backupPodSets,
    {
      apiVersion: 'backup.example.com/v1alpha1',
      kind: 'BackupPodSet',
      metadata: { name: 'set' },
      spec: {
        replicas: 2,
        hotBackups: 1,
        coldBackups: 1,
        template: { spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'app', image: 'app' }] } },
      },
    },
    { namespace },
  )

/**
 * The life of a set: creation, loss of a primary, scale up, scale down. Each step is checked as soon as it has settled.
 */
async function life(stage: Stage, wait: (want: number[]) => Promise<Pod[]>) {
  const { namespace } = stage
  await create(namespace)
  const first = await wait([2, 1, 1])
  check(stage, first, [2, 1, 1])
  const lost = first.find(pod => pod.metadata.labels?.[labels.type] === 'primary')
  const hot = first.find(pod => pod.metadata.labels?.[labels.type] === 'hotbackup')
  if (!lost || !hot) throw new Error('no primary or no hot backup')
  await api.delete(pods, { namespace, name: lost.metadata.name })
  const second = await vi.waitFor(async () => {
    const all = await wait([2, 1, 1])
    if (all.some(pod => pod.metadata.uid === lost.metadata.uid)) throw new Error('not yet deleted')
    return all
  }, 300_000)
  check(stage, second, [2, 1, 1])
  // Promoted in place: the same pod that was a hot backup before, in the lost slot.
  const heir = second.find(pod => pod.metadata.uid === hot.metadata.uid)
  expect(heir?.metadata.labels).toMatchObject({
    type: 'primary',
    [labels.slot]: lost.metadata.labels?.[labels.slot],
  })
  await api.patch(
    backupPodSets,
    { namespace, name: 'set' },
    { type: 'merge', body: { spec: { replicas: 3, hotBackups: 2, coldBackups: 2 } } },
  )
  check(stage, await wait([3, 2, 2]), [3, 2, 2])
  await api.patch(
    backupPodSets,
    { namespace, name: 'set' },
    { type: 'merge', body: { spec: { replicas: 1, hotBackups: 1, coldBackups: 1 } } },
  )
  const last = await wait([1, 1, 1])
  stage.most()
  check(stage, last, [1, 1, 1])
}

/** Returns the number of writes in the life of a set when nothing fails. */
async function faultFree(): Promise<number> {
  let writes = 0
  await onStage(async stage => {
    await stage.start().leading()
    await life(stage, want => settled(stage.namespace, want))
    writes = stage.proxy.requests.filter(isWrite).length
  })
  return writes
}

describe('F34: faults at any write', () => {
  let writes = 0
  beforeAll(async () => {
    writes = await faultFree()
    expect(writes).toBeGreaterThan(15)
  })

  it.each([0, 1, 2])(
    'SIGKILL after write 3n+%i: the next start goes on from what is there',
    async rest => {
      await onStage(async stage => {
        let operator = stage.start()
        await operator.leading()
        let count = 0
        let kills = 0
        let isStarting = false
        const restart = async () => {
          await untilOver(operator, stage.proxy)
          operator = stage.start()
          isStarting = false
        }
        let restarting: Promise<void> = Promise.resolve()
        stage.proxy.between(
          () => {
            count += 1
            // Writes already in flight when the operator died must not start a second one.
            if (count % 3 !== rest || isStarting) return
            isStarting = true
            kills += 1
            operator.kill()
            restarting = restart()
          },
          isWrite,
          writes,
        )
        await life(stage, want => settled(stage.namespace, want))
        await restarting
        expect(kills).toBeGreaterThan(3)
      })
    },
    900_000,
  )

  it('D6.names: the answer to every second write is lost: nothing is made twice', async () => {
    await onStage(async stage => {
      await stage.start().leading()
      let count = 0
      stage.proxy.loseResponse(writes * 2, request => {
        if (!isWrite(request)) return false
        count += 1
        return count % 2 === 0
      })
      await life(stage, want => settled(stage.namespace, want))
    })
  }, 900_000)

  it.each([409, 429, 500, 503])(
    'every third write is answered %i without being executed',
    async code => {
      await onStage(async stage => {
        await stage.start().leading()
        let count = 0
        stage.proxy.status(code, {
          count: writes,
          match: request => {
            if (isWrite(request)) count += 1
            return isWrite(request) && count % 3 === 0
          },
          ...(code === 429 ? { retryAfterSeconds: 1 } : {}),
        })
        await life(stage, want => settled(stage.namespace, want))
      })
    },
    900_000,
  )

  it('watches that are cut and late do not make it act twice', async () => {
    await onStage(async stage => {
      await stage.start().leading()
      const late = stage.proxy.delayWatch(({ path, watch }) => watch && path.endsWith('/pods'))
      await create(stage.namespace)
      // While its own cache is stale, the operator must not act beyond its first pass.
      await vi.waitFor(async () => expect(await livePods(stage.namespace)).toHaveLength(4))
      await api.patch(
        backupPodSets,
        { namespace: stage.namespace, name: 'set' },
        { type: 'merge', body: { spec: { paused: false, replicas: 3 } } },
      )
      expect(await livePods(stage.namespace)).toHaveLength(4)
      late.end()
      stage.proxy.dropWatch()
      check(stage, await settled(stage.namespace, [3, 1, 1]), [3, 1, 1])
    })
  }, 900_000)
})
