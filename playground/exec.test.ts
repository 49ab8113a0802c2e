import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { CommandError, lastLines, run, runToEnd } from './exec.ts'
import { identify } from './process.ts'

describe('run', () => {
  test('gives standard output, feeds standard input', async () => {
    expect(await run(['tr', 'a-z', 'A-Z'], { input: 'hello' })).toBe('HELLO')
  })

  test('a failure names command, exit code and the last words', async () => {
    const error = await run(['sh', '-c', 'echo first >&2; echo last words >&2; exit 3']).catch(
      (e: unknown) => e,
    )
    expect(error).toBeInstanceOf(CommandError)
    expect((error as CommandError).message).toMatch(/exit code 3.*\nfirst\nlast words$/)
    expect((error as CommandError).exitCode).toBe(3)
  })

  test('a program that is not there is an error of its own', async () => {
    await expect(run(['/no/such/program'])).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('a program that ignores its input is no error', async () => {
    await run(['true'], { input: 'x'.repeat(1_000_000) })
  })

  test('an abort kills the program and what it has started', async () => {
    const stop = new AbortController()
    const started = Promise.withResolvers<number>()
    const running = run(['sh', '-c', 'sleep 60 & echo $! >&2; wait'], {
      signal: stop.signal,
      onErrorLine: line => started.resolve(Number(line)),
    })
    const grandchild = await started.promise
    expect(await identify(grandchild)).toBeDefined()
    stop.abort(new Error('enough'))
    await expect(running).rejects.toThrow('enough')
    await expect.poll(() => identify(grandchild)).toBeUndefined()
  })

  test('everything is also in the log', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'understudy-exec-'))
    try {
      const logFile = join(dir, 'deep', 'x.log')
      await runToEnd(['sh', '-c', 'echo out; echo err >&2; exit 1'], { logFile })
      await expect.poll(() => readFile(logFile, 'utf8')).toMatch(/^\$ sh -c .*\n(.*\n)*out\n/)
      expect(await readFile(logFile, 'utf8')).toContain('err')
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})

test('lastLines', () => {
  expect(lastLines('a\nb\nc\n\n', 2)).toBe('b\nc')
  expect(lastLines('', 2)).toBe('')
})
