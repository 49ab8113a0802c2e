import { describe, expect, it } from 'vitest'
import { AgentError } from '../api/agent-errors.ts'
import type { Heartbeats } from '../api/node-report.ts'
import { createFakeClock } from '../kube/clock.ts'
import { silentLog } from '../kube/log.ts'
import { listen } from './listen.ts'

const refuses = async () => {
  throw new AgentError('SentinelRefused', 'heartbeats: refused unknown-verb')
}

function stand(answer = async (): Promise<{ port: number; run: string }> => ({ port: 9443, run: 'r1' })) {
  const clock = createFakeClock()
  const it = {
    present: 'first',
    answer,
    ports: [] as number[],
    told: 0,
    runs: [] as (string | undefined)[],
    published: [] as (Heartbeats | null | undefined)[],
    problems: [] as unknown[],
  }
  const status = {
    heartbeats: undefined as Heartbeats | null | undefined,
    publish: () => void it.published.push(status.heartbeats),
  }
  const stop = new AbortController()
  const running = listen(
    {
      sentinel: {
        heartbeats(port) {
          it.ports.push(port)
          return it.answer()
        },
        async tellVotes() {
          it.told += 1
        },
      },
      port: 9443,
      key: { publicKey: 'ab' },
      core: { listens: run => void it.runs.push(run) },
      ...{ status, present: () => it.present, clock },
      log: { ...silentLog, warn: (...said) => void it.problems.push(said) },
    },
    stop.signal,
  )
  const end = async () => {
    stop.abort()
    await running
  }
  return { it, clock, end }
}

describe('the sentinel listens', () => {
  it('once asked, and its report says where', async () => {
    const { it, clock, end } = stand()
    await clock.advance(0)
    expect(it.published).toEqual([{ port: 9443, run: 'r1', key: 'ab' }])
    expect(it.runs).toEqual(['r1'])
    expect(it.told).toBe(1)
    for (let i = 0; i < 3; i += 1) await clock.advance(5_000)
    expect(it.ports).toEqual([9443])
    await end()
  })

  it('another one is asked again, and has another run after a reboot', async () => {
    const { it, clock, end } = stand()
    await clock.advance(0)
    it.present = 'second'
    it.answer = async () => ({ port: 9443, run: 'r2' })
    await clock.advance(5_000)
    expect(it.runs).toEqual(['r1', 'r2'])
    expect(it.published.at(-1)).toEqual({ port: 9443, run: 'r2', key: 'ab' })
    await end()
  })

  it('a sentinel of an earlier version does not listen; the log says so once', async () => {
    const { it, clock, end } = stand(refuses)
    for (let i = 0; i < 3; i += 1) await clock.advance(5_000)
    expect(it.ports.length).toBeGreaterThan(2)
    expect(new Set(it.published)).toEqual(new Set([null]))
    expect(it.problems).toHaveLength(1)
    it.answer = async () => ({ port: 9443, run: 'r1' })
    await clock.advance(5_000)
    expect(it.published.at(-1)).toMatchObject({ run: 'r1' })
    await end()
  })

  it('a connection that breaks takes nothing back', async () => {
    const { it, clock, end } = stand()
    await clock.advance(0)
    it.present = 'second'
    it.answer = async () => {
      throw new AgentError('SentinelLost')
    }
    await clock.advance(5_000)
    expect(it.published).toHaveLength(1)
    await end()
  })
})
