import { describe, expect, it, vi } from 'vitest'
import { KubeError } from '../../kube/errors.ts'
import { silentLog } from '../../kube/log.ts'
import { createInheritedConnections } from './inherited-connections.ts'

const from = { namespace: 'default', name: 'p', uid: 'uid-p', ip: '10.0.0.1' }

/** @param isThere answer of the API server so many ms after the promotion. */
async function stand(isThere: (ms: number) => boolean, sever = async (): Promise<number> => 1) {
  let now = 0
  const severed: number[] = []
  const told: unknown[] = []
  const warned: unknown[] = []
  const stop = new AbortController()
  const partings = createInheritedConnections({
    inquiry: { isThere: async () => isThere(now) },
    sever: async (pid, address) => {
      expect([pid, address]).toEqual([7, '10.0.0.1'])
      severed.push(now)
      return sever()
    },
    clock: {
      monotonic: () => now,
      sleep: async (ms, signal) => {
        signal?.throwIfAborted()
        now += ms
        if (now > 100_000) throw new Error('it never ends')
      },
    },
    log: {
      ...silentLog,
      info: (...line: unknown[]) => void told.push(line[0]),
      warn: (...line: unknown[]) => void warned.push(line[0]),
    } as typeof silentLog,
    signal: stop.signal,
  })
  partings.begin({ name: 'h' }, 7, from)
  await vi.waitFor(() => expect(told.length + warned.length).toBe(1))
  return { severed, told, warned }
}

describe('connections that came by a dead pod', () => {
  it('end once there is a shorter way, and until that pod and its network are gone', async () => {
    const { severed, told } = await stand(ms => ms < 2_500)
    expect(severed.slice(0, 2)).toEqual([1_500, 1_800])
    expect(severed.at(-1)).toBe(5_700)
    expect(told).toEqual([{ pod: 'h', from: 'p', ended: severed.length }])
  })

  it('end at once where that pod is being deleted already', async () => {
    const { severed } = await stand(() => false)
    expect(severed[0]).toBe(300)
    expect(severed.at(-1)).toBe(3_300)
  })

  it('end for a minute, where that pod stays', async () => {
    const { severed } = await stand(() => true)
    expect(severed[0]).toBe(1_500)
    expect(severed.at(-1)).toBe(60_000)
  })

  it('wait while the API server does not say whether it is there', async () => {
    const { severed } = await stand(ms => {
      if (ms < 4_000) throw new KubeError('Unavailable', 'away')
      return false
    })
    expect(severed[0]).toBe(1_500)
    expect(severed.at(-1)).toBe(7_200)
  })

  it('are left alone where the kernel cannot, and that is told', async () => {
    const { severed, warned } = await stand(
      () => false,
      async () => {
        throw new Error('exit code 3')
      },
    )
    expect(severed).toHaveLength(1)
    expect(warned).toEqual([{ err: expect.objectContaining({ message: 'exit code 3' }), pod: 'h' }])
  })
})
