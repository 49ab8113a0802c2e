import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { sizeOfMemory } from './memory-size.ts'

let proc: string
beforeEach(async () => {
  proc = await mkdtemp(join(tmpdir(), 'memory-size-'))
})
afterEach(() => rm(proc, { recursive: true }))

async function put(pid: number, children: string, lines: readonly string[]) {
  await mkdir(join(proc, `${pid}/task/${pid}`), { recursive: true })
  await writeFile(join(proc, `${pid}/task/${pid}/children`), children)
  await writeFile(join(proc, `${pid}/status`), lines.join('\n'))
}

it('counts what each process has for itself, swapped out or not, and shared memory once', async () => {
  await put(10, '11 ', [
    'Name:\tapp',
    'RssAnon:\t     100 kB',
    'RssShmem:\t      50 kB',
    'VmSwap:\t       8 kB',
  ])
  await put(11, '', ['Name:\tRssAnon: 9 kB', 'RssAnon:\t      40 kB', 'RssShmem:\t      50 kB'])
  const containers = [{ app: { pid: 10, start: 1 } }, { app: undefined }, { app: { pid: 99, start: 1 } }]
  const { signal } = new AbortController()
  expect(await sizeOfMemory({ proc, host: 1 }, { containers }, signal)).toBe((100 + 8 + 40 + 50) * 1024)
})
