import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { usageOf } from './agent-usage.ts'

/** Creates cgroups as the kernel shows them: files of each hierarchy, by path. */
async function cgroups(files: Readonly<Record<string, string>>): Promise<string[]> {
  const root = await mkdtemp(join(tmpdir(), 'cgroups-'))
  onTestFinished(() => rm(root, { recursive: true }))
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(root, dirname(path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  return [...new Set(Object.keys(files).map(path => join(root, dirname(path))))]
}

const v2Stat = (usec: number) => `usage_usec ${usec}\nuser_usec 1\nsystem_usec 2\n`

test('what the agent and its sentinel have used, in either version', async () => {
  expect(
    await usageOf(
      await cgroups({
        'cpuacct/pod1/cpuacct.usage': '2500000000\n',
        'cpuacct/understudy/cpuacct.usage': '500000000\n',
        'memory/pod1/memory.stat': 'rss 1\nshmem 2\ntotal_rss 1000\ntotal_shmem 24\n',
      }),
    ),
  ).toEqual({ cpuSeconds: 3, memory: 1024, saved: 24 })
  expect(
    await usageOf(
      await cgroups({
        'pod1/cpu.stat': v2Stat(2_500_000),
        'pod1/memory.stat': 'anon 1000\nfile 7\nshmem 24\n',
        'understudy/cpu.stat': v2Stat(500_000),
      }),
    ),
  ).toEqual({ cpuSeconds: 3, memory: 1024, saved: 24 })
})

test('in hybrid mode both versions count the same time: once', async () => {
  const usage = await usageOf(
    await cgroups({
      'cpuacct/pod1/cpuacct.usage': '2500000000\n',
      'unified/pod1/cpu.stat': v2Stat(2_500_000),
    }),
  )
  expect(usage.cpuSeconds).toBe(2.5)
})
