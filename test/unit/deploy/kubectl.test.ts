import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { usableKubectl } from '../../../deploy/chart/kubectl.ts'

/** A program that prints what kubectl prints for a version. */
async function kubectl(gitVersion: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'understudy-kubectl-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const program = join(directory, 'kubectl')
  await writeFile(program, `#!/bin/sh\nprintf 'clientVersion:\\n  gitVersion: ${gitVersion}\\n'\n`)
  await chmod(program, 0o755)
  return program
}

test.each(['v1.30.0', 'v1.36.3', 'v1.32.4-dispatcher', 'v2.0.0'])(
  'kubectl %s builds the chart',
  async version => {
    const program = await kubectl(version)
    expect(await usableKubectl(program)).toBe(program)
  },
)

test.each(['v1.29.9', 'v0.40.0', 'none'])('kubectl %s does not', async version => {
  expect(await usableKubectl(await kubectl(version))).toBeUndefined()
})

test('nor does a program that is missing or fails', async () => {
  expect(await usableKubectl('/nowhere/kubectl')).toBeUndefined()
  expect(await usableKubectl('false')).toBeUndefined()
})
