import { describe, expect, test } from 'vitest'
import { linkIfThere, parseStartTime, parseStatus } from './process.ts'

test.each([
  ['a name with everything in it', '7 (a) b (c d)) S 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9', 4711],
  ['cut off', '7 (a) S 1 7', undefined],
])('start time: %s', (_, text, expected) => {
  expect(parseStartTime(text)).toBe(expected)
})

describe('status', () => {
  test('pids in every namespace, pending signals of thread and process', () => {
    const status = parseStatus(
      'Name:\tx\nState:\tT (stopped)\nNSpid:\t812\t30\t1\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000004000\n',
    )
    expect(status.state).toBe('T')
    expect(status.nsPids).toEqual([812, 30, 1])
    expect(status.pending).toBe(0x4001n)
  })
  test('a kernel that says less', () => {
    expect(parseStatus('Name:\tx\n')).toMatchObject({ state: '?', nsPids: [], pending: 0n })
  })
})

describe('a link of a process', () => {
  const hidden = async (): Promise<string> => {
    throw Object.assign(new Error('EACCES'), { code: 'EACCES' })
  }
  const here = `/proc/${process.pid}`

  test('is read while it is there', async () => {
    expect(await linkIfThere(here, 'ns/pid')).toMatch(/^pid:/)
    expect(await linkIfThere(here, 'ns/none')).toBeUndefined()
  })
  test('that the kernel denies is gone with its process, and an error while that lives', async () => {
    expect(await linkIfThere('/proc/4194305', 'ns/pid', hidden)).toBeUndefined()
    await expect(linkIfThere(here, 'ns/pid', hidden)).rejects.toThrow('EACCES')
  })
})
