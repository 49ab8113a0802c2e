import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import type { PodKind } from '../src/api/labels.ts'
import type { Pod } from '../src/kube/resources.ts'
import { changesBetween, deviations, listingDeviations, slotDeviations } from './check.ts'
import { isSettled, type PodRow, rowOf } from './picture.ts'

const row = (digit: string, kind: PodKind, more: Partial<PodRow> = {}): PodRow => ({
  name: `bps-sample-${digit.repeat(12)}`,
  uid: digit,
  kind,
  slot: kind === 'primary' ? '0' : '',
  epoch: kind === 'primary' ? '1' : '',
  node: 'n1',
  ip: `10.0.0.${Number.parseInt(digit, 16)}`,
  ready: '1/1',
  status: 'Running',
  restarts: 0,
  inPlace: true,
  leaving: false,
  ...more,
})

// The failure in the paper's story at 1/1/1.
const before = [row('1', 'primary'), row('2', 'hotbackup'), row('3', 'coldbackup')]
const after = [
  row('1', 'primary', { leaving: true }),
  row('2', 'primary', { epoch: '2' }),
  row('3', 'hotbackup'),
  row('4', 'coldbackup'),
]
const cascade = { created: { coldbackup: 1 }, deleted: { primary: 1 }, hotToPrimary: 1, coldToHot: 1 }

test('a failure that was repaired in place has no deviations', () => {
  expect(deviations('bps-sample', before, after, cascade)).toEqual([])
  expect(slotDeviations(row('1', 'primary'), after)).toEqual([])
})

test.each<[string, PodRow[], RegExp]>([
  [
    'recreated instead of promoted',
    [row('5', 'primary'), row('2', 'hotbackup'), row('3', 'coldbackup')],
    /primary created: 1 instead of 0/,
  ],
  ['restarted', after.map(it => ({ ...it, restarts: it.uid === '2' ? 1 : 0 })), /was restarted 1 times/],
  [
    'another pod under the same name',
    after.map(it => (it.uid === '2' ? { ...it, uid: '9' } : it)),
    /was recreated/,
  ],
  [
    'another address',
    after.map(it => (it.uid === '3' ? { ...it, ip: '10.0.0.99' } : it)),
    /changed its address/,
  ],
  ['demoted', [...after, row('6', 'coldbackup')], /coldbackup created: 2 instead of 1/],
  [
    'a name of another form',
    after.map(it => (it.uid === '4' ? { ...it, name: 'bps-sample-xyz' } : it)),
    /not of the form/,
  ],
])('%s is a deviation', (_, pods, message) => {
  expect(deviations('bps-sample', before, pods, cascade).join('\n')).toMatch(message)
})

test('a demotion is seen although the numbers are right', () => {
  const demoted = deviations('bps-sample', [row('1', 'primary')], [row('1', 'hotbackup')], {})
  expect(demoted).toEqual([`bps-sample-${'1'.repeat(12)} was demoted to hotbackup`])
})

test('a slot without a successor, with two, or with an old epoch is a deviation', () => {
  const lost = row('1', 'primary')
  expect(slotDeviations(lost, [])).toHaveLength(1)
  expect(
    slotDeviations(lost, [row('2', 'primary', { epoch: '2' }), row('3', 'primary', { epoch: '2' })]),
  ).toHaveLength(1)
  expect(slotDeviations(lost, [row('2', 'primary', { epoch: '1' })])).toHaveLength(1)
})

test('changes are counted by uid, and pods on their way out are gone', () => {
  expect(changesBetween(before, after)).toEqual({ ...cascade, coldToPrimary: 0 })
})

test('the listing has to have the columns and the numbers of the paper', () => {
  const wish = { primary: 2, hotbackup: 2, coldbackup: 2 }
  const header = 'NAME         NAMESPACE   REPLICAS   HOTBACKUPS   COLDBACKUPS   AGE'
  const good = `${header}\nbps-sample   default     2/2        2/2          2/2           50s\n`
  expect(listingDeviations(good, 'bps-sample', 'default', wish)).toEqual([])
  expect(listingDeviations(good.replace('2/2', '1/2'), 'bps-sample', 'default', wish)).toHaveLength(1)
  expect(listingDeviations(good.replace('NAMESPACE   ', ''), 'bps-sample', 'default', wish)).toHaveLength(1)
})

test('the columns of our kind begin with those of the paper', async () => {
  const file = new URL('../crds/backup.example.com_backuppodsets.yaml', import.meta.url)
  const { spec } = parse(await readFile(file, 'utf8')) as {
    spec: { versions: { additionalPrinterColumns: { name: string; priority?: number }[] }[] }
  }
  const shown = spec.versions[0]?.additionalPrinterColumns.filter(({ priority = 0 }) => priority === 0) ?? []
  const header = ['NAME', ...shown.map(({ name }) => name.toUpperCase())].join('   ')
  const listing = `${header}\nbps-sample   default     2/2        2/2          2/2           50s   2/2     4/4\n`
  const wish = { primary: 2, hotbackup: 2, coldbackup: 2 }
  expect(listingDeviations(listing, 'bps-sample', 'default', wish)).toEqual([])
})

test('settled means: exact numbers, everybody in place, pods on their way out not counted', () => {
  const wish = { primary: 1, hotbackup: 1, coldbackup: 1 }
  expect(isSettled(after, wish)).toBe(true)
  expect(
    isSettled(
      after.map(it => (it.uid === '3' ? { ...it, inPlace: false } : it)),
      wish,
    ),
  ).toBe(false)
  expect(isSettled(before.slice(0, 2), wish)).toBe(false)
})

test('a pod at its gate reads as kubectl shows it', () => {
  const meta = { name: 'p', uid: 'u', resourceVersion: '1', labels: { type: 'coldbackup' } }
  const pod = {
    metadata: meta,
    spec: {
      nodeName: 'n1',
      containers: [{ name: 'nginx' }],
      initContainers: [{ name: 'understudy-gate', restartPolicy: 'Always' }],
    },
    status: {
      phase: 'Pending',
      initContainerStatuses: [
        {
          name: 'understudy-gate',
          image: '',
          imageID: '',
          ready: false,
          restartCount: 0,
          state: { running: {} },
        },
      ],
    },
  }
  expect(rowOf(pod)).toMatchObject({ status: 'Init:0/1', ready: '0/2', inPlace: true, restarts: 0 })
  const [gate] = pod.status.initContainerStatuses
  const woken = {
    ...pod,
    metadata: { ...meta, labels: { type: 'hotbackup' } },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ ...gate, name: 'nginx', ready: true }],
      initContainerStatuses: [{ ...gate, ready: true, started: true }],
    },
  } as Pod
  expect(rowOf(woken)).toMatchObject({ status: 'Running', ready: '2/2', inPlace: true })
  expect(rowOf({ ...pod, metadata: { ...meta, labels: { type: 'other' } } })).toBeUndefined()
})
