import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import packageJson from '../package.json' with { type: 'json' }
import { buildCli } from './cli.ts'
import { buildPage } from './page.ts'

const run = promisify(execFile)
let scratch = ''
/** The program as a user has it: a single file outside the checkout. */
let program = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-cli-'))
  const { program: built } = await buildCli(join(scratch, 'built'))
  // It must also start where it was built: below a package.json of another module type.
  expect((await run(process.execPath, [built, '--version'])).stdout.trim()).toBe(packageJson.version)
  program = join(scratch, 'kubectl-understudy')
  await copyFile(built, program)
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

describe('the bundle of the command line tool', () => {
  test('runs alone, and has everything in it', async () => {
    const { stdout } = await run(process.execPath, [program, 'doctor', '--help'])
    expect(stdout).toContain('--operator-namespace')
    const failed = run(process.execPath, [program, 'status', '--kubeconfig', join(scratch, 'none')])
    await expect(failed).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cannot read kubeconfig'),
    })
  })

  test('has the page of `dashboard` in it, and serves it although the API server is away', async () => {
    const kubeconfig = join(scratch, 'kubeconfig')
    const named = { clusters: [{ name: 'a', cluster: { server: 'http://127.0.0.1:1' } }], users: [] }
    const contexts = [{ name: 'a', context: { cluster: 'a' } }]
    await writeFile(kubeconfig, JSON.stringify({ ...named, contexts, 'current-context': 'a' }))
    const child = spawn(process.execPath, [program, 'dashboard', '--kubeconfig', kubeconfig])
    const ended = new Promise(resolve => child.once('exit', resolve))
    try {
      const [address]: string[] = await once(createInterface({ input: child.stdout }), 'line')
      const arrived = await fetch(address ?? 'nothing was printed')
      const cookie = arrived.headers.get('set-cookie')?.split(';')[0] ?? ''
      const script = await fetch(new URL('/page.js', address), { headers: { cookie } })
      expect([script.status, await script.text()]).toEqual([200, (await buildPage()).script])
    } finally {
      child.kill('SIGINT')
    }
    expect(await ended).toBe(0)
  })

  test('says so on a Node that is too old', async () => {
    const old = join(scratch, 'old.cjs')
    await writeFile(
      old,
      "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.1.0' } })",
    )
    await expect(run(process.execPath, ['--require', old, program, 'status'])).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('needs Node.js 24 or later'),
    })
  })
})
