import { mkdtemp } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { run } from '../../../build/run.ts'
import { isAgentError } from '../../api/agent-errors.ts'
import { sizeOf } from './volumes-size.ts'

test('directories in one another take no more descriptors than the agent has', async () => {
  const directory = await mkdtemp('/dev/shm/nested-')
  const nested = "for (let i = 0; i < 20_000; i += 1) { fs.mkdirSync('a'); process.chdir('a') }"
  try {
    await run(process.execPath, ['-e', `const fs = require('node:fs'); ${nested}`], { cwd: directory })
    const refused = sizeOf(directory, 2 ** 40, AbortSignal.timeout(60_000)).catch((error: unknown) => error)
    expect(isAgentError(await refused, 'Unsupported')).toBe(true)
  } finally {
    await run('rm', ['-rf', directory])
  }
})
