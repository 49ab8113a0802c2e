/**
 * Rows of the paper on a real API server. Each test fails if the promised behaviour is removed.
 *
 * Long because it is a list: one test for each row of the paper.
 */

import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../playground/free-port.ts'
import { type BackupPodSetSpec, backupPodSets } from '../../src/api/backuppodset.ts'
import { annotations, labels, type PodKind } from '../../src/api/labels.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { namespaces, type Pod, pods } from '../../src/kube/resources.ts'
import { eventually } from '../support/eventually.ts'
import { type FakeKubelet, startFakeKubelet } from './lib/fake-kubelet.ts'
import { type OperatorProcess, startOperator } from './lib/operator-process.ts'
import { adminKubeconfig } from './lib/plane.ts'

let api: Api
let kubelet: FakeKubelet
let operator: OperatorProcess
let metricsUrl: string
const namespace = `paper-${randomBytes(4).toString('hex')}`

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  await api.create(namespaces, { metadata: { name: namespace } })
  kubelet = startFakeKubelet(api, namespace)
  const metricsPort = await freePort()
  metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`
  operator = startOperator(
    adminKubeconfig(),
    namespace,
    '--no-leader-elect',
    ...['--metrics-port', `${metricsPort}`, '--log-level', 'debug'],
  )
  await operator.leading()
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  await api.close()
})

async function create(name: string, spec: Partial<BackupPodSetSpec>) {
  const template = {
    metadata: { labels: { app: name } },
    spec: { containers: [{ name: 'app', image: 'app' }] },
  }
  const body = {
    ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet' },
    ...{ metadata: { name }, spec: { template, ...spec } },
  }
  await api.create(backupPodSets, body, { namespace })
  const ref = { namespace, name }
  const live = async () =>
    (await api.list(pods, { namespace, labelSelector: `${labels.set}=${name}` })).items.filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined,
    )
  return {
    live,
    status: async () => (await api.get(backupPodSets, ref)).status,
    patch: (change: Partial<BackupPodSetSpec>) =>
      api.patch(backupPodSets, ref, { type: 'merge', body: { spec: change } }),
    settled: (p: number, h: number, c: number) =>
      eventually(async () => {
        const { status } = await api.get(backupPodSets, ref)
        const seen = [status?.readyReplicas, status?.readyHotbackups, status?.gatedColdbackups]
        const all = await live()
        if (seen.join() !== [p, h, c].join() || all.length !== p + h + c) throw new Error(`${seen}`)
        return all
      }),
    /** Returns the actions of its passes so far, in order. */
    passes: () =>
      operator.log
        .filter(line => line.includes(`"name":"${name}"`) && line.includes('"acted"'))
        .map(line => (JSON.parse(line) as { actions: Record<string, number> }).actions),
  }
}

const ofKind = (all: readonly Pod[], kind: PodKind) =>
  all.filter(({ metadata }) => metadata.labels?.[labels.type] === kind)
const uids = (all: readonly Pod[]) => all.map(({ metadata }) => metadata.uid).sort()
const kill = ({ metadata: { name } }: Pod) => api.delete(pods, { namespace, name }, { gracePeriodSeconds: 0 })
const first = <T>(all: readonly T[]): T => {
  const [one] = all
  if (one === undefined) throw new Error('none')
  return one
}

it('F23: while a primary cannot be made the tiers below are left alone, although theirs could be', async () => {
  const set = await create('tiers', { replicas: 1 })
  await set.settled(1, 0, 0)
  const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies'
  const bindings = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings'
  const name = `no-primaries.${namespace}`
  await api.request('POST', policies, {
    body: {
      metadata: { name },
      spec: {
        matchConstraints: {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
          resourceRules: [
            { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
          ],
        },
        validations: [
          {
            expression: "object.metadata.?labels[?'type'].orValue('') != 'primary'",
            message: 'no primaries today',
          },
        ],
      },
    },
  })
  await api.request('POST', bindings, {
    body: { metadata: { name }, spec: { policyName: name, validationActions: ['Deny'] } },
  })
  const body = {
    metadata: { name: 'tried', labels: { type: 'primary' } },
    spec: { containers: [{ name: 'app', image: 'app' }] },
  }
  const tried = () => api.create(pods, body, { namespace, dryRun: true })
  await eventually(() => expect(tried()).rejects.toThrow('no primaries today'))
  const before = set.passes().length
  await set.patch({ replicas: 2, hotBackups: 1, coldBackups: 1 })
  // The operator retries repeatedly, and these passes do nothing else.
  await eventually(() => expect(set.passes().length - before).toBeGreaterThan(3))
  expect(set.passes().slice(before)).toEqual(
    set
      .passes()
      .slice(before)
      .map(() => ({ 'create failed': 1 })),
  )
  expect(await set.live()).toHaveLength(1)
  await api.request('DELETE', `${bindings}/${name}`)
  await api.request('DELETE', `${policies}/${name}`)
  await set.settled(2, 1, 1)
}, 180_000)

it('F24: hot to primary, cold to hot and a new cold are the work of one pass', async () => {
  const set = await create('cascade', { replicas: 1, hotBackups: 1, coldBackups: 1 })
  // On a busy machine a gate may take longer than a pass waits for it; then a second pass finishes the work.
  for (let tries = 0; tries < 6; tries += 1) {
    const before = await set.settled(1, 1, 1)
    const done = set.passes().length
    const lost = first(ofKind(before, 'primary'))
    await kill(lost)
    const after = await eventually(async () => {
      const all = await set.settled(1, 1, 1)
      expect(uids(all)).not.toContain(lost.metadata.uid)
      return all
    })
    expect(uids(ofKind(after, 'primary'))).toEqual(uids(ofKind(before, 'hotbackup')))
    expect(uids(ofKind(after, 'hotbackup'))).toEqual(uids(ofKind(before, 'coldbackup')))
    const passes = set.passes().slice(done)
    if (passes.length === 1) {
      expect(passes).toEqual([{ convert: 2, create: 1 }])
      return
    }
  }
  throw new Error('no failure was repaired in one pass')
}, 300_000)

it('F33: the loss of a primary is seen by the watch of pods: long before a resync there is a successor', async () => {
  const set = await create('seen', { replicas: 1, hotBackups: 1 })
  const before = await set.settled(1, 1, 0)
  await kill(first(ofKind(before, 'primary')))
  // Half of the 30 s after which the operator makes a pass without any trigger.
  await eventually(
    async () => expect(uids(ofKind(await set.live(), 'primary'))).toEqual(uids(ofKind(before, 'hotbackup'))),
    15_000,
  )
})

it('F18 F38: after failures at the same time who was not lost is there, and as many are new as were lost', async () => {
  const set = await create('many', { replicas: 2, hotBackups: 1, coldBackups: 2 })
  let all = await set.settled(2, 1, 2)
  const [victim] = ofKind(all, 'primary')
  const hits: readonly (() => readonly Pod[])[] = [
    () => [...(victim ? [victim] : []), ...ofKind(all, 'hotbackup')],
    () => ofKind(all, 'primary'),
  ]
  for (const hit of hits) {
    const before = all
    const lost = hit()
    expect(lost).toHaveLength(2)
    await Promise.all(lost.map(kill))
    all = await eventually(async () => {
      const now = await set.settled(2, 1, 2)
      expect(uids(now).filter(uid => uids(lost).includes(uid))).toEqual([])
      return now
    })
    const kept = uids(before).filter(uid => !uids(lost).includes(uid))
    expect(uids(all).filter(uid => kept.includes(uid))).toEqual(kept)
    // New pods are, or have been, cold backups: no primary is created while a backup exists.
    for (const pod of all.filter(({ metadata }) => !kept.includes(metadata.uid)))
      expect(pod.spec?.initContainers?.map(({ name }) => name)).toContain('understudy-gate')
    for (const pod of ofKind(before, 'primary').filter(each => !lost.includes(each)))
      expect(uids(ofKind(all, 'primary'))).toContain(pod.metadata.uid)
  }
  expect(
    ofKind(all, 'primary')
      .map(({ metadata }) => metadata.labels?.[labels.slot])
      .sort(),
  ).toEqual(['0', '1'])
  // With one backup for two losses, only one primary is new.
  await set.patch({ hotBackups: 1, coldBackups: 0 })
  const before = await set.settled(2, 1, 0)
  const lost = ofKind(before, 'primary')
  await Promise.all(lost.map(kill))
  const after = await eventually(async () => {
    const now = await set.settled(2, 1, 0)
    expect(uids(now).filter(uid => uids(lost).includes(uid))).toEqual([])
    return now
  })
  expect(uids(ofKind(after, 'primary'))).toContain(first(uids(ofKind(before, 'hotbackup'))))
}, 300_000)

it('F31: each set waits for a silent gate as long as its own wakeupTimeout says, and no longer', async () => {
  const [short, long] = [
    await create('short', { replicas: 0, coldBackups: 1, wakeupTimeout: 1 }),
    await create('long', { replicas: 0, coldBackups: 1, wakeupTimeout: 300 }),
  ]
  const silent = [first(await short.settled(0, 0, 1)), first(await long.settled(0, 0, 1))]
  for (const { metadata } of silent) kubelet.silent.add(metadata.name)
  await long.patch({ replicas: 1 })
  await short.patch({ replicas: 1 })
  expect(uids(await short.settled(1, 0, 1))).not.toContain(silent[0]?.metadata.uid)
  expect(uids(await long.live())).toContain(silent[1]?.metadata.uid)
  expect((await long.status())?.readyReplicas).toBe(0)
})

const scrape = async () => (await fetch(metricsUrl)).text()

/** Returns the value of a metric whose labels have these parts; 0: there is none. */
function figureIn(scraped: string, name: string, ...parts: readonly string[]): number {
  const line = scraped
    .split('\n')
    .find(each => /^\w+/.exec(each)?.[0] === name && parts.every(part => each.includes(part)))
  return Number(line?.split(' ').at(-1) ?? 0)
}

/** Returns all passes over sets that have ended, in order, as the log says. */
const loggedPasses = () =>
  operator.log
    .map(line => JSON.parse(line) as { controller?: string; name?: string; seconds?: number })
    .flatMap(({ controller, name, seconds }) =>
      controller === 'backuppodset' && seconds !== undefined ? [{ name, seconds }] : [],
    )

/** Returns the figures of all sets so far. The log has at least the passes that they count. */
async function figures() {
  const scraped = await scrape()
  const time = (what: string) =>
    figureIn(scraped, `controller_runtime_reconcile_time_seconds_${what}`, '"backuppodset"')
  const actions = (type: string) =>
    figureIn(scraped, 'understudy_actions_total', `type="${type}"`, 'result="done"')
  const failover = (what: string) =>
    figureIn(scraped, `understudy_failover_duration_seconds_${what}`, 'set="timed"', 'PodDeleted')
  const passes = time('count')
  await eventually(() => expect(loggedPasses().length).toBeGreaterThanOrEqual(passes))
  return {
    ...{ passes, seconds: time('sum'), created: actions('create'), converted: actions('convert') },
    ...{ failovers: failover('count'), failoverSeconds: failover('sum') },
  }
}

it('F36: how long creation, update and failure took is told, and adds up', async () => {
  const began = performance.now()
  const atFirst = await figures()
  const set = await create('timed', { replicas: 1, hotBackups: 1, coldBackups: 1 })
  const before = await set.settled(1, 1, 1)
  const created = await figures()
  expect(created.created).toBe(atFirst.created + 3)

  await set.patch({ replicas: 2 })
  await set.settled(2, 1, 1)
  const updated = await figures()
  expect(updated.converted).toBe(created.converted + 2)
  const transition = (await set.status())?.lastTransition
  expect(transition).toMatchObject({ from: 'coldbackup', to: 'hotbackup' })

  const lost = first(ofKind(before, 'primary'))
  await kill(lost)
  const failover = await eventually(async () => {
    const told = (await set.status())?.lastFailover
    expect(told?.from).toBe(lost.metadata.name)
    return told
  })
  await set.settled(2, 1, 1)
  const repaired = await figures()
  const elapsed = (performance.now() - began) / 1000

  // The time of each of the three is that of its passes, as the operator has logged them one by one.
  for (const [from, to] of [
    [atFirst, created],
    [created, updated],
    [updated, repaired],
  ] as const) {
    const own = loggedPasses().slice(from.passes, to.passes)
    expect(own.map(({ name }) => name)).toContain('timed')
    const sum = own.reduce((total, pass) => total + pass.seconds, 0)
    expect(sum).toBeGreaterThan(0)
    // Sums of binary fractions differ in their last digits.
    expect(to.seconds - from.seconds).toBeCloseTo(sum, 6)
  }
  expect(repaired.failovers).toBe(atFirst.failovers + 1)
  const seconds = repaired.failoverSeconds - atFirst.failoverSeconds
  expect(seconds).toBeGreaterThan(0)
  // The status has whole milliseconds, and the operator reads the clock for it after it does so for the metric.
  expect(failover?.seconds).toBeGreaterThan(seconds - 0.0006)
  expect(failover?.seconds).toBeLessThan(elapsed)
})

it('F40: a model outside chooses transitions by its annotation, and nobody waits for it', async () => {
  const strategy = { hotbackupToReplicas: 'annotated', hotbackupToUnallocated: 'annotated' } as const
  const set = await create('chosen', { replicas: 1, hotBackups: 5, strategy })
  const before = await set.settled(1, 5, 0)
  // The test plays the part of the model.
  const wish = (pod: Pod | undefined, value: string) =>
    api.patch(
      pods,
      { namespace, name: pod?.metadata.name ?? '' },
      { type: 'merge', body: { metadata: { annotations: { [annotations.preferenceRequested]: value } } } },
    )
  const hot = ofKind(before, 'hotbackup')
  await wish(hot[3], '7')
  await wish(hot[1], '-7')
  await wish(hot[2], '3')
  await wish(hot[0], 'much')
  await kill(first(ofKind(before, 'primary')))
  await eventually(async () =>
    expect(uids(ofKind(await set.live(), 'primary'))).toEqual([hot[3]?.metadata.uid]),
  )
  // The status may still be that of before. Without the fifth one, a wish for four would delete none.
  await eventually(async () => expect(ofKind(await set.live(), 'hotbackup')).toHaveLength(5))
  await set.settled(1, 5, 0)
  await set.patch({ hotBackups: 4 })
  expect(uids(await set.settled(1, 4, 0))).not.toContain(hot[1]?.metadata.uid)
  // Among pods without any value from the model, one still succeeds.
  await set.patch({ hotBackups: 0 })
  await set.settled(1, 0, 0)
  await set.patch({ hotBackups: 2 })
  const silent = await set.settled(1, 2, 0)
  await kill(first(ofKind(silent, 'primary')))
  await eventually(async () => {
    const [heir] = ofKind(await set.live(), 'primary')
    expect(uids(ofKind(silent, 'hotbackup'))).toContain(heir?.metadata.uid)
  })
}, 180_000)
