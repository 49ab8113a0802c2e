import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { start } from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { listen } from './testing/beats.ts'
import { buildApp } from './testing/build.ts'
import { type Cgroup, cannotCgroup, createCgroup } from './testing/cgroup.ts'
import { own } from './testing/own.ts'
import { api, key, primary, startNode } from './testing/voters.ts'

const PROCESSES = 3_000
/** The time-out of the other primary, ms. */
const brisk = 60
const beats = 12

/** Starts many processes in a cgroup. They end with the test, whatever becomes of it. */
async function crowd(cgroup: Cgroup): Promise<void> {
  const procs = join(cgroup.directory, 'cgroup.procs')
  own({
    async [Symbol.asyncDispose]() {
      await eventually(() => expect(readFileSync(procs, 'utf8')).toBe(''))
    },
  })
  const parent = own(await start(await buildApp(), ['crowd', String(PROCESSES), procs]))
  await eventually(() => expect(parent.stdout()).toBe('ready\n'))
}

describe.skipIf(cannotCgroup !== undefined)(`a pod with thousands of processes ${cannotCgroup ?? ''}`, () => {
  test('D8.crowd: while they stop, stay stopped and resume, the beats of another primary keep their pace', async () => {
    const cgroup = own(createCgroup())
    const node = own(await startNode('a'))
    const peer = own(await listen())
    await crowd(cgroup)
    const run = 'b'.repeat(16)
    expect(await node.ask('peer', { name: 'b', address: '127.0.0.1', port: peer.port, run, key })).toBe('ok')
    /** Has a primary acknowledged by an answer of the API server, which may come too late. */
    const begin = (name: string, over: Parameters<typeof primary>[1]) =>
      eventually(async () => {
        const acknowledged = node.ask('primary', primary([api, `b/${run}`], { name, slot: name, ...over }))
        await node.answered({ name })
        expect(await acknowledged).toBe('ok')
      })
    const said = (text: string) => eventually(() => expect(node.sentinel.stderr()).toContain(text))
    /** Returns the time of the latest line of the log with this text, in ms since 1970. */
    const timeOf = (text: string) => {
      const line = node.sentinel
        .stderr()
        .split('\n')
        .findLast(one => one.includes(text))
      return Number(line?.match(/"time":(\d+)/)?.[1])
    }
    /** Returns how many beats a phase had, and half of those that it would have without the crowd. */
    const during = async (phase: () => Promise<unknown>) => {
      const from = process.hrtime.bigint()
      await phase()
      const to = process.hrtime.bigint()
      // The latest ones may still be on their way.
      await eventually(() => expect(peer.sent.some(at => at > to)).toBe(true))
      const usual = (Number(to - from) / 1e6 / brisk) * beats
      return { had: peer.sent.filter(at => at > from && at < to).length, half: Math.floor(usual / 2) }
    }
    await begin('other', { timeout: brisk })
    await begin('pod', { cgroup: cgroup.path })
    await node.event('stops', { name: 'pod' })
    const stopping = await during(() => said('stopped'))
    const stopped = await during(() => new Promise(resolve => setTimeout(resolve, 1_000)))
    const resuming = await during(async () => {
      expect(await node.answered()).toBe('ok')
      await said('"a primary runs again"')
    })
    for (const { had, half } of [stopping, stopped, resuming]) expect(had).toBeGreaterThanOrEqual(half)
    // All resume in one piece of work, which begins and ends with these lines of the log.
    const from = timeOf('"a primary serves","name":"pod"')
    const to = timeOf('"a primary runs again"')
    const since = Date.now() - Number(process.hrtime.bigint()) / 1e6
    const inside = peer.sent.map(at => since + Number(at) / 1e6).filter(at => at > from + 2 && at < to - 2)
    expect(inside.length).toBeGreaterThan(0)
  })
})
