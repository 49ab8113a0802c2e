import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adminKubeconfig } from '../lib/plane.ts'
import { installKit } from './install.ts'

const run = promisify(execFile)
let below: string
let directory: string

beforeAll(async () => {
  below = await mkdtemp(join(tmpdir(), 'understudy-kit-'))
  directory = await installKit(below, ['@types/node'])
})
afterAll(() => rm(below, { recursive: true, force: true }))

/** Returns the compiler's complaints about a strict program of the user and about the kit's own declarations. */
async function complaints(): Promise<readonly string[]> {
  const compilerOptions = {
    noEmit: true,
    strict: true,
    target: 'es2024',
    module: 'nodenext',
    types: ['node'],
  }
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  const { stdout } = await run('tsc', { cwd: directory }).catch((failed: { stdout: string }) => failed)
  // The declarations of client-node lack those of `ws`; no part of the kit uses these.
  return stdout
    .split('\n')
    .filter(line => /error TS/.test(line) && !/^node_modules\/(?!@understudy)/.test(line))
}

test('a program compiles against the installed package, and finds the API server with it', async () => {
  const program = `
    import { createApi, loadConnection, namespaces } from '@understudy/kube'
    import { createFakeClock } from '@understudy/kube/testing'

    const api = createApi({ connection: await loadConnection() })
    const { items } = await api.list(namespaces, { fieldSelector: 'metadata.name=default' })
    await api.close()
    const clock = createFakeClock()
    await clock.advance(1_000)
    console.log(items[0]?.metadata.name)
  `
  await writeFile(join(directory, 'program.ts'), program)
  expect(await complaints()).toEqual([])
  const env = { ...process.env, KUBECONFIG: adminKubeconfig() }
  const { stdout } = await run(process.execPath, ['program.ts'], { cwd: directory, env })
  expect(stdout).toBe('default\n')
})
