import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inOwnProcess } from '../../../test/support/own-process.ts'

const podUid = '0f1e2d3c-0000-4000-8000-000000000001'
const id = 'ab'.repeat(32)
const bomb = 20_000
const init = 100

const proc = mkdtempSync(join(tmpdir(), 'understudy-proc-'))
afterAll(() => rmSync(proc, { recursive: true, force: true }))

/** Returns the fields of `status` that the agent reads, padded to the length of the kernel's file. */
const status = (pid: number, inside: number) =>
  [
    ...['Name:\tapp', 'State:\tS (sleeping)', `Pid:\t${pid}`, `NSpid:\t${pid}\t${inside}`],
    ...['SigPnd:\t0000000000000000', 'ShdPnd:\t0000000000000000'],
    ...Array.from({ length: 50 }, (_, index) => `Field${index}:\t${'0'.repeat(16)}`),
    '',
  ].join('\n')

/** Makes the directory of a process in the fake /proc. */
function addProcess(directory: string, pid: number, inside: number): void {
  mkdirSync(join(proc, directory))
  writeFileSync(join(proc, directory, 'cgroup'), `0::/kubepods/pod${podUid}/${id}\n`)
  writeFileSync(join(proc, directory, 'status'), status(pid, inside))
  writeFileSync(join(proc, directory, 'stat'), `${pid} (app) S ${'0 '.repeat(18)}77 0\n`)
}

beforeAll(() => {
  mkdirSync(join(proc, '1'))
  writeFileSync(join(proc, '1', 'mountinfo'), '30 1 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n')
  addProcess(`${init}`, init, 1)
  // Symlinks to one child: to make 80,000 files would take long.
  addProcess('child', init + 1, 2)
  for (let each = 1; each < bomb; each += 1) symlinkSync('child', join(proc, `${init + each}`))
}, 120_000)

test('D10.fork-bomb: a container with very many processes is found, and costs the agent little memory', async () => {
  const fs = { proc, host: 1 }
  const container = { name: 'app', containerId: `containerd://${id}` }
  const inContainers = (name: string, ...given: readonly unknown[]) =>
    inOwnProcess(new URL('container.ts', import.meta.url), name, fs, podUid, ...given)
  const located = await inContainers('locateContainers', [container])
  expect(located.result).toMatchObject([{ name: 'app', init: { pid: init, start: 77 }, depth: 2 }])
  const firsts = await inContainers('firstProcessesIn')
  expect(firsts.result).toEqual([{ pid: init, start: 77 }])
  expect(Math.max(located.grownKiB, firsts.grownKiB)).toBeLessThan(100 * 1024)
}, 120_000)
