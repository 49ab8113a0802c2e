import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { unlimited } from '../../checkpoint/images/limits.ts'
import { hostProcFs } from '../container/process.ts'
import { beyondLimits, beyondPrecedence, type Limits, livingLimits, parsePrecedence } from './limits.ts'
import type { Rights } from './rights.ts'

const ids = { real: 0, effective: 0, saved: 0, filesystem: 0 }
const rights = (bounding: string): Rights => ({
  ...{ uids: ids, gids: ids, groups: [], noNewPrivileges: false, seccomp: 'filter' },
  capabilities: { inheritable: '0', permitted: bounding, effective: bounding, bounding, ambient: '0' },
})
const none = rights('a80425fb')
const holder: Limits = {
  limits: Array.from({ length: 16 }, (_, at) => ({ soft: 0n, hard: at === 13 || at === 14 ? 0n : 1024n })),
  ...{ oomScore: 500, nice: 0, policy: 0 },
}
const raised = (number: number, hard: bigint): Limits => ({
  ...holder,
  limits: holder.limits.map((limit, at) => (at === number ? { ...limit, hard } : limit)),
})

describe('D10.forged: limits and precedence', () => {
  test.each<[string, Limits, Rights, string[]]>([
    ['the same', holder, none, []],
    ['lower ones', { ...raised(7, 10n), oomScore: 900, nice: 5 }, none, []],
    ['a batch', { ...holder, policy: 3 }, none, []],
    ['more files', raised(7, 2048n), none, ['limit 7 of 2048']],
    ['more of everything', raised(8, unlimited), none, [`limit 8 of ${unlimited}`]],
    ['killed later', { ...holder, oomScore: -999 }, none, ['oom_score_adj -999']],
    ['before all others', { ...holder, policy: 1 }, none, ['scheduling policy 1']],
    ['before others', { ...holder, nice: -1 }, none, ['nice -1 instead of 0']],
    ['who may', { ...raised(7, 2048n), oomScore: -5, nice: -20, policy: 2 }, rights('1800000'), []],
  ])('%s', (_, held, of, expected) => {
    expect(beyondLimits(held, holder, of)).toEqual(expected)
  })

  test('what the limits of the container allow', () => {
    expect(beyondPrecedence({ nice: -5, policy: 1 }, raised(13, 25n), none)).toEqual(['scheduling policy 1'])
    expect(beyondPrecedence({ nice: 0, policy: 1 }, raised(14, 1n), none)).toEqual([])
  })

  test('as /proc tells them', async () => {
    const own = await livingLimits(hostProcFs, process.pid)
    expect(own?.limits).toHaveLength(16)
    expect(own?.oomScore).toBe(Number(await readFile('/proc/self/oom_score_adj', 'utf8')))
    const stat = `7 (a b) c) S ${Array.from({ length: 49 }, (_, at) => at + 4).join(' ')}`
    expect(parsePrecedence(stat)).toEqual({ nice: 19, policy: 41 })
  })
})
