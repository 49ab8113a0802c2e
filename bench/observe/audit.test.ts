import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { type AuditEvent, betweenAnswers, openAuditLog, parseAuditLine, unixMs } from './audit.ts'

const line = (verb: string, stage = 'ResponseComplete') =>
  JSON.stringify({
    stage,
    verb,
    user: {
      username: 'system:serviceaccount:understudy-system:understudy-operator',
      extra: { 'authentication.kubernetes.io/pod-name': ['understudy-operator-1'] },
    },
    objectRef: { resource: 'backuppodsets', subresource: 'status', namespace: 'bench', name: 'web' },
    responseStatus: { code: 200 },
    requestReceivedTimestamp: '2026-01-02T03:04:05.000250Z',
    stageTimestamp: '2026-01-02T03:04:05.004500Z',
  })

const dirs: string[] = []
afterEach(async () => {
  for (const dir of dirs.splice(0)) await rm(dir, { recursive: true })
})

describe('the audit log', () => {
  it('keeps the µs of its times', () => {
    expect(unixMs('2026-01-02T03:04:05.004500Z') - unixMs('2026-01-02T03:04:05.000250Z')).toBeCloseTo(4.25, 3)
    expect(unixMs('1970-01-01T00:00:01Z')).toBe(1000)
    expect(() => unixMs('yesterday')).toThrow('not a time')
  })

  it('takes answered requests only', () => {
    expect(parseAuditLine(line('update'))).toMatchObject({
      verb: 'update',
      resource: 'backuppodsets/status',
      name: 'web',
      pod: 'understudy-operator-1',
      code: 200,
    })
    expect(parseAuditLine(line('watch', 'ResponseStarted'))).toBeUndefined()
  })

  it('tells the time between two answered requests', () => {
    const event = (verb: string, at: number, code = 200): AuditEvent => ({
      received: at - 1,
      answered: at,
      user: 'u',
      verb,
      resource: 'pods',
      namespace: 'bench',
      name: 'p',
      code,
    })
    const events = [event('patch', 5), event('delete', 10), event('patch', 12, 409), event('patch', 15)]
    const is = (verb: string) => (it: AuditEvent) => it.verb === verb
    expect(betweenAnswers(events, is('delete'), is('patch'))).toBe(5)
    expect(() => betweenAnswers(events, is('delete'), is('create'))).toThrow('does not show')
  })

  it('reads what came after the last skip, complete lines only', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'audit-'))
    dirs.push(dir)
    const path = join(dir, 'audit.log')
    await writeFile(path, `${line('create')}\n`)
    const log = openAuditLog(path)
    await log.skip()
    await appendFile(path, `${line('patch')}\n${line('delete').slice(0, 40)}`)
    expect((await log.read()).map(({ verb }) => verb)).toEqual(['patch'])
    await appendFile(path, `${line('delete').slice(40)}\n`)
    expect((await log.read()).map(({ verb }) => verb)).toEqual(['patch', 'delete'])
    await log.skip()
    expect(await log.read()).toEqual([])
  })
})
