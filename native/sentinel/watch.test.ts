import { beforeAll, describe, expect, test } from 'vitest'
import { start } from '../../init-waker/testing/process.ts'
import { buildProgram } from '../build.ts'
import { buildApp, buildSanitized } from './testing/build.ts'
import { processOf, startSentinel } from './testing/sentinel.ts'

const why = process.getuid?.() === 0 ? undefined : '(needs root: it serves nobody else)'

describe.skipIf(why !== undefined).each([
  ['release build', () => buildProgram('sentinel')],
  ['sanitized build', () => buildSanitized('sentinel')],
])(`watches, %s ${why ?? ''}`, (_, build) => {
  let program: string
  let app: string
  beforeAll(async () => {
    program = await build()
    app = await buildApp()
  })

  test('a death is told to everybody who listens, with its time', async () => {
    await using sentinel = await startSentinel(program)
    await using victim = await start(app, ['pause'])
    const [asker, listener, other] = [
      await sentinel.connect(),
      await sentinel.connect(),
      await sentinel.connect(),
    ]
    expect((await asker.ask('watch', { name: 'v', ...processOf(victim.pid) })).word).toBe('watching')
    await listener.ask('watches')
    const before = BigInt(Date.now()) * 1_000_000n
    process.kill(victim.pid, 'SIGKILL')
    for (const client of [asker, listener]) {
      const { id, values } = await client.line(line => line.word === 'died')
      expect([id, values['name'], values['grave'], values['grave_us']]).toEqual(['-', 'v', 'none', '0'])
      expect(BigInt(values['at_unix_ns'] ?? 0)).toBeGreaterThanOrEqual(before)
      expect(BigInt(values['at_unix_ns'] ?? 0)).toBeLessThanOrEqual(BigInt(Date.now() + 1) * 1_000_000n)
    }
    await other.ask('hello')
    expect(other.lines).toEqual([])
  })

  test('a watch survives its client, and so does the news until somebody takes note', async () => {
    await using sentinel = await startSentinel(program)
    await using victim = await start(app, ['pause'])
    await using survivor = await start(app, ['pause'])
    const first = await sentinel.connect()
    const died = processOf(victim.pid)
    await first.ask('watch', { name: 'victim', ...died })
    await first.ask('watch', { name: 'survivor', ...processOf(survivor.pid) })
    await first.close()
    process.kill(victim.pid, 'SIGKILL')
    await victim.exit

    for (let round = 0; round < 2; round++) {
      const next = await sentinel.connect()
      expect((await next.ask('watches')).word).toBe('ok')
      const listed = (name: string) => next.lines.filter(line => line.values['name'] === name)
      expect(listed('survivor')).toMatchObject([{ word: 'watch', values: { died: '0', grave: 'none' } }])
      expect(listed('victim')).toMatchObject([
        { word: 'watch', values: { pid: String(died.pid), start: died.start } },
        { word: 'died', values: { grave: 'none' } },
      ])
      expect(listed('victim')[0]?.values['died']).toBe(listed('victim')[1]?.values['at_unix_ns'])
      // This client leaves without `unwatch`: the next one must get the death, too.
      await next.close()
    }
    const last = await sentinel.connect()
    expect((await last.ask('unwatch', { name: 'victim' })).word).toBe('ok')
    await last.ask('watches')
    expect(last.lines.map(line => line.values['name'])).toEqual(['survivor'])
  })

  test('asking again for the same is harmless, for another under the same name is refused', async () => {
    await using sentinel = await startSentinel(program)
    await using one = await start(app, ['pause'])
    await using two = await start(app, ['pause'])
    const client = await sentinel.connect()
    await client.ask('watch', { name: 'x', ...processOf(one.pid) })
    const descriptors = sentinel.descriptors()
    expect((await client.ask('watch', { name: 'x', ...processOf(one.pid) })).word).toBe('watching')
    expect((await client.ask('watch', { name: 'x', ...processOf(two.pid) })).values['reason']).toBe('busy')
    expect(sentinel.descriptors()).toBe(descriptors)
  })

  test('a pid that belongs to somebody else by now is gone', async () => {
    await using sentinel = await startSentinel(program)
    await using other = await start(app, ['pause'])
    const client = await sentinel.connect()
    const { pid, start: begun } = processOf(other.pid)
    for (const wrong of [Number(begun) - 1, Number(begun) + 1])
      expect((await client.ask('watch', { name: 'x', pid, start: wrong })).word).toBe('gone')
    expect((await client.ask('watch', { name: 'x', pid: 4194304, start: 1 })).word).toBe('gone')
    await client.ask('watches')
    expect(client.lines).toEqual([])
  })

  test('nobody is told of a death after unwatch, and nothing stays open', async () => {
    await using sentinel = await startSentinel(program)
    await using victim = await start(app, ['pause'])
    const client = await sentinel.connect()
    await client.ask('hello')
    const idle = sentinel.descriptors()
    await client.ask('watch', { name: 'x', ...processOf(victim.pid) })
    // The process, and the ends of processes where the kernel tells them.
    expect([1, 2]).toContain(sentinel.descriptors() - idle)
    await client.ask('unwatch', { name: 'x' })
    expect(sentinel.descriptors()).toBe(idle)
    process.kill(victim.pid, 'SIGKILL')
    await victim.exit
    await client.ask('hello')
    expect(client.lines).toEqual([])
  })

  test('many deaths at the same moment are all told', async () => {
    await using sentinel = await startSentinel(program)
    const victims = await Promise.all(Array.from({ length: 100 }, () => start(app, ['pause'])))
    const client = await sentinel.connect()
    for (const { pid } of victims) await client.ask('watch', { name: String(pid), ...processOf(pid) })
    for (const { pid } of victims) process.kill(pid, 'SIGKILL')
    await Promise.all(
      victims.map(({ pid }) =>
        client.line(line => line.word === 'died' && line.values['name'] === String(pid)),
      ),
    )
    expect(client.lines).toEqual([])
  })
})
