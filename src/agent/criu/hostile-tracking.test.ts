import { execFileSync } from 'node:child_process'
import { constants } from 'node:fs'
import { mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../../kube/clock.ts'
import type { ProcessRef } from '../container/process.ts'
import type { SpawnRequest } from '../sentinel/client.ts'
import type { LocatedPod } from './memory-driver.ts'
import { createTracking } from './tracking.ts'

const signal = new AbortController().signal
let directory = ''

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'understudy-tracking-'))
  await mkdir(join(directory, 'work'))
  await live({ pid: 1, start: 1 })
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const proc = () => join(directory, 'proc')
const stat = ({ pid, start }: ProcessRef) => `${pid} (p) S ${'0 '.repeat(18)}${start} 0\n`
/** A large process. */
async function live(process: ProcessRef): Promise<void> {
  const own = join(proc(), String(process.pid))
  await mkdir(join(own, 'task'), { recursive: true })
  await writeFile(join(own, 'status'), 'RssAnon:\t  100000 kB\n')
  await writeFile(join(own, 'stat'), stat(process))
}
const end = ({ pid }: ProcessRef) => rm(join(proc(), String(pid)), { recursive: true, force: true })

/** A node whose trackers answer with a word for each process; without a word, they end at the first request. */
function makeNode(answer: { word: string | undefined; ends: boolean }) {
  const started: ProcessRef[] = []
  const warnings: object[] = []
  const tracking = createTracking({
    sentinel: {
      async spawnDetached({ files }: SpawnRequest) {
        const program = { pid: 1_000 + started.length, start: 1 }
        started.push(program)
        await live(program)
        const socket = connect(join(files.at(-1)?.path ?? '', 'track'))
        socket.on('error', () => undefined)
        socket.on('data', data => {
          if (answer.word === undefined) socket.destroy()
          const all = data.toString().trim().split(' ').slice(1)
          socket.write(`prepared 7 ${all.map(it => `${it.split(':')[0]}=${answer.word}`).join(' ')}\n`)
        })
        return program
      },
      async treeKill(program) {
        if (answer.ends) await end(program)
        return { count: 1 }
      },
    },
    fs: { proc: proc(), host: 1 },
    clock: systemClock,
    programs: directory,
    workDirectory: join(directory, 'work'),
    isOnRequest: false,
    isPossible: () => true,
    log: { warn: fields => warnings.push(fields) },
  })
  return { tracking, started, warnings }
}

const podOf = (uid: string, app: ProcessRef): LocatedPod => {
  const target = { name: 'app', containerId: 'containerd://app', imageId: '' }
  return {
    pod: { namespace: 'default', name: uid, uid, ip: '', containers: [target], promoted: false },
    containers: [{ ...target, init: app, app, depth: 1, cgroups: [] }],
  }
}
const baseOf = (podUid: string, takenAt: string) => ({
  dir: '/base',
  manifest: { takenAt, source: { pod: podUid, podUid, node: 'n' } },
})

test('a process that forges a userfaultfd: its pod is saved whole from then on', async () => {
  const { tracking, started, warnings } = makeNode({ word: 'forged', ends: true })
  const app = { pid: 10, start: 5 }
  await live(app)
  for (let i = 0; i < 3; i += 1)
    expect(await tracking.begin(podOf('a', app), undefined, signal)).toBe(undefined)
  expect(started).toHaveLength(1)
  expect(warnings).toEqual([{ podUid: 'a', reason: expect.stringContaining('userfaultfd') }])
})

test('a pod whose tracker fails three times is not tracked any more', async () => {
  const answer: { word: string | undefined; ends: boolean } = { word: undefined, ends: true }
  const { tracking, started } = makeNode(answer)
  const app = { pid: 10, start: 5 }
  await live(app)
  const begin = () => tracking.begin(podOf('a', app), undefined, signal)
  for (let i = 0; i < 2; i += 1) expect(await begin()).toBe(undefined)
  // An answer in between: trackers end once a day without any fault.
  answer.word = 'yes'
  expect(await begin()).toEqual({ heldMicroseconds: 7 })
  answer.word = undefined
  for (let i = 0; i < 6; i += 1) expect(await begin()).toBe(undefined)
  expect(started).toHaveLength(5)
})

test('trackers that are given up and do not end have their places; no more than 16 are there at once', async () => {
  const { tracking, started } = makeNode({ word: undefined, ends: false })
  for (let pid = 10; pid < 30; pid += 1) {
    await live({ pid, start: 5 })
    await tracking.begin(podOf(`p${pid}`, { pid, start: 5 }), undefined, signal)
  }
  expect(started).toHaveLength(16)
  for (const program of started.slice(0, 2)) await end(program)
  for (let pid = 25; pid < 30; pid += 1)
    await tracking.begin(podOf(`p${pid}`, { pid, start: 5 }), undefined, signal)
  expect(started).toHaveLength(18)
})

test('dumps that begin at once start no more trackers', async () => {
  const { tracking, started } = makeNode({ word: 'yes', ends: true })
  const all = Array.from({ length: 20 }, (_, index) => ({ pid: 10 + index, start: 5 }))
  for (const process of all) await live(process)
  await Promise.all(all.map(app => tracking.begin(podOf(`p${app.pid}`, app), undefined, signal)))
  expect(started).toHaveLength(16)
})

test('a pod whose containers are restarted while another dump looks at its old processes keeps its record', async () => {
  const { tracking } = makeNode({ word: 'yes', ends: true })
  const [old, fresh, other] = [
    { pid: 10, start: 5 },
    { pid: 20, start: 6 },
    { pid: 30, start: 7 },
  ]
  for (const process of [old, fresh, other]) await live(process)
  await tracking.begin(podOf('a', old), undefined, signal)
  // A reader of this file waits for the test.
  const pipe = join(proc(), '10', 'stat')
  await rm(pipe)
  execFileSync('mkfifo', [pipe])
  const first = tracking.begin(podOf('b', other), undefined, signal)
  const writer = await eventually(() => open(pipe, constants.O_WRONLY | constants.O_NONBLOCK))
  await end(old)
  await tracking.begin(podOf('a', fresh), undefined, signal)
  tracking.done('a', 't1')
  await writer.write(stat({ pid: 10, start: 99 }))
  await writer.close()
  await first
  const next = await tracking.begin(podOf('a', fresh), baseOf('a', 't1'), signal)
  expect(next).toEqual({ heldMicroseconds: 7, since: '/base' })
})
