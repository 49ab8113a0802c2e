import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { buildApp } from './testing/build.ts'
import { cannotCgroup, createCgroup } from './testing/cgroup.ts'
import { own } from './testing/own.ts'
import { startIn, statesOf } from './testing/paused.ts'
import { api, type Node, primary, startNode } from './testing/voters.ts'

describe.skipIf(cannotCgroup !== undefined)(`promises that are lost ${cannotCgroup ?? ''}`, () => {
  test('D8.whole: what was frozen stays stopped until its primary has answers again, not what a dump stopped', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sentinel-lost-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const app = await buildApp()
    const [cgroup, other] = [own(createCgroup()), own(createCgroup())]
    const [a, b] = [own(await startIn(app, cgroup)), own(await startIn(app, other))]
    const settled = (...states: readonly string[]) => eventually(() => expect(statesOf(a, b)).toEqual(states))
    const stop = (path: string) => ({ name: 'n', deadline: 3_600_000, cgroup: path })
    const moment = () => new Promise(resolve => setTimeout(resolve, 300))
    /** Has the primary acknowledged by an answer of the API server, which may come too late. */
    const acknowledge = (node: Node) =>
      eventually(async () => {
        const acknowledged = node.ask('primary', primary([api], { cgroup: cgroup.path }))
        await node.answered()
        expect(await acknowledged).toBe('ok')
      })
    {
      await using node = await startNode('a', directory)
      await acknowledge(node)
      await node.event('stops', {})
      expect(await node.ask('stop', stop(other.path))).toBe('stopped')
      await settled('T', 'T')
      process.kill(node.sentinel.pid, 'SIGKILL')
      await node.sentinel.exit
    }
    const votes = join(directory, 's.votes')
    writeFileSync(votes, readFileSync(votes, 'utf8').replace('end\n', ''))
    const next = own(await startNode('a', directory))
    await settled('T', 'S')
    await moment()
    expect(statesOf(a)).toEqual(['T'])
    // A dump that begins before its agent has told about the primary does not resume it either.
    expect(await next.ask('stop', stop(cgroup.path))).toBe('stopped')
    expect(await next.ask('continue', { name: 'n' })).toBe('continued')
    // Nor does a primary that has no answers yet.
    const early = next.ask('primary', primary([api], { cgroup: cgroup.path }))
    await next.event('alone', {})
    await moment()
    expect(statesOf(a)).toEqual(['T'])
    await acknowledge(next)
    expect(await early).toMatch(/^refused /)
    await eventually(async () => {
      expect(await next.answered()).toBe('ok')
      expect(statesOf(a, b)).toEqual(['S', 'S'])
    })
  })
})
