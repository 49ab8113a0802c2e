import { expect, it } from 'vitest'
import { AgentError } from '../../api/agent-errors.ts'
import { silentLog } from '../../kube/log.ts'
import { reachHeir } from './reach-heir.ts'

it('the agent warns once that it cannot reach the agent of the heir, and once more after a connection has ended', async () => {
  const ends = ['fails', 'fails', 'closes', 'fails', 'fails'] as const
  const stop = new AbortController()
  const warned: number[] = []
  let tried = 0
  const work = {
    reach: async () => {
      const end = ends[tried]
      tried += 1
      if (end === 'fails') throw new AgentError('PeerUnreachable', '10.0.0.2')
    },
    clock: {
      now: () => 0,
      monotonic: () => 0,
      sleep: async () => {
        if (tried === ends.length) stop.abort(new Error('over'))
        stop.signal.throwIfAborted()
      },
    },
    log: { ...silentLog, warn: () => void warned.push(tried) },
  }
  const to = { address: '10.0.0.2', fingerprint: 'aa' }
  await expect(
    reachHeir(work, { type: 'reachHeir', key: 'reachHeir/s', version: '', to }, stop.signal),
  ).rejects.toThrow('over')
  expect(warned).toEqual([1, 4])
})
