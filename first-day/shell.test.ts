import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type PlannedCommand, planOf } from './plan.ts'
import { play } from './play.ts'
import { openShell } from './shell.ts'

async function shell(signal: AbortSignal = new AbortController().signal) {
  const scratch = await mkdtemp(join(tmpdir(), 'first-day-shell-'))
  const opened = openShell({ cwd: scratch, env: { PATH: process.env['PATH'] }, scratch, signal })
  onTestFinished(async () => {
    await opened[Symbol.asyncDispose]()
    await rm(scratch, { recursive: true })
  })
  return { ...opened, scratch, close: () => opened[Symbol.asyncDispose]() }
}

test('a command finds the variables, functions and descriptors of the earlier ones', async () => {
  const { type } = await shell()
  expect((await type('a=1; say() { echo "$a $1"; }; exec 3>kept; cd /')).code).toBe(0)
  expect(await type("say 'it''s'; echo err >&2; echo x >&3")).toMatchObject({
    code: 0,
    output: '1 its\nerr\n',
  })
  expect(await type('cat; false')).toMatchObject({ code: 1, output: '' })
  expect(await type('pwd')).toMatchObject({ output: '/\n' })
})

test('an abort ends the command, which may clean up', async () => {
  const stop = new AbortController()
  const { type, scratch, close } = await shell(stop.signal)
  const typed = type('trap "touch cleaned; exit" TERM; touch started; sleep 1000 & wait')
  await expect.poll(() => existsSync(join(scratch, 'started'))).toBe(true)
  stop.abort(new Error('enough'))
  await expect(typed).rejects.toThrow('enough')
  await close()
  expect(existsSync(join(scratch, 'cleaned'))).toBe(true)
})

test('a shell that ends is an error', async () => {
  const { type } = await shell()
  await expect(type('exit 0')).rejects.toThrow('the shell has ended: exit 0')
})

test('a user stops at the first command that fails, and counts until the milestone', async () => {
  const text = '# H\n```sh\necho a   # {"b":1}\ntrue\nfalse\necho never\n```\n'
  const steps = [{ does: 'all', link: { page: 'p.md', heading: 'H' } }]
  const user = { name: 'a', is: 'b', cluster: 'none' as const, has: [], steps, targets: [] }
  const [planned] = await planOf({ users: [user], substitutions: [], read: async () => text })
  const reaching = (command: PlannedCommand) =>
    command.typed === 'true' ? { ...command, reaches: 'half' } : command
  const commands = (planned?.commands ?? []).map(reaching)
  const told: string[] = []
  const opened = await shell()
  const played = await play({ user, commands }, opened, ({ typed }) => told.push(typed))
  expect(told).toEqual(['echo a', 'true', 'false'])
  expect(played.commands.map(({ result }) => result)).toEqual([
    { kind: 'differs', missing: ['{"b":1}'] },
    { kind: 'ok' },
    { kind: 'failed', code: 1, tail: '' },
  ])
  expect(played).toMatchObject({ left: 1, reached: { half: expect.any(Number) } })
})
