import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import { identify, isAlive, signalProcess, startTimeOf, stateOf, waitGone } from './process.ts'

describe('fields of /proc/PID/stat', () => {
  const stat = (command: string): string =>
    `42 (${command}) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 9`

  test.each(['bash', 'a b', 'odd) S 1 (name', ')'])('are found behind the command "%s"', command => {
    expect(startTimeOf(stat(command))).toBe('987654')
    expect(stateOf(stat(command))).toBe('S')
  })
})

describe('a process identity', () => {
  const children: ReturnType<typeof spawn>[] = []
  const sleeper = async () => {
    const child = spawn('sleep', ['60'])
    children.push(child)
    await once(child, 'spawn')
    const identity = await identify(child.pid ?? 0)
    if (identity === undefined) throw new Error('no identity')
    return { child, identity }
  }
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })

  test('is alive until the process ends', async () => {
    const { child, identity } = await sleeper()
    expect(await isAlive(identity)).toBe(true)
    await signalProcess(identity, 'SIGKILL')
    await once(child, 'exit')
    expect(await waitGone(identity, 5_000)).toBe(true)
    expect(await isAlive(identity)).toBe(false)
  })

  test('of an earlier process with the same pid leads to no kill', async () => {
    const { identity } = await sleeper()
    await signalProcess({ ...identity, startTime: '1' }, 'SIGKILL')
    await signalProcess({ ...identity, bootId: 'before the reboot' }, 'SIGKILL')
    expect(await isAlive(identity)).toBe(true)
  })

  test('does not exist for a pid that nobody has', async () => {
    expect(await identify(2 ** 22)).toBeUndefined()
  })
})
