import { describe, expect, test } from 'vitest'
import { redactedLine } from './log-files.ts'
import { kept, scrubbed } from './redact.ts'
import { pod } from './shapes.ts'

describe('D19.report: what leaves the cluster', () => {
  test('only named fields are kept', () => {
    const value = { a: 1, b: { c: 'x', d: 'y' }, list: [{ e: 1, f: 2 }, 'odd'], g: [1] }
    expect(kept(value, { a: true, b: { c: true }, list: [{ e: true }], g: true })).toEqual({
      ...{ a: 1, b: { c: 'x' }, list: [{ e: 1 }] },
    })
    // A field with another shape than expected stays behind.
    expect(kept({ a: { secret: 'x' } }, { a: true })).toEqual({})
    expect(kept({ a: 'x' }, { a: { b: true } })).toEqual({})
    expect(kept(JSON.parse('{"__proto__": {"a": 1}}'), { a: true })).toEqual({})
  })

  test.each([
    ['password=hunter2 next', 'password=[redacted] next'],
    ['{"token":"abc-def"}', '{"token":"[redacted]"}'],
    ['Authorization: Bearer abc.def', 'Authorization: [redacted] [redacted]'],
    ['https://user:pass@host/path', 'https://[redacted]@host/path'],
    ['eyJhbGciOi.eyJzdWIiOi.c2ln is a token', '[redacted] is a token'],
    ['-----BEGIN KEY-----\nabc\n-----END KEY-----', '[redacted]'],
    ['key QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0NTY3ODk= end', 'key [redacted] end'],
  ])('texts lose credentials: %s', (text, expected) => {
    expect(scrubbed(text)).toBe(expected)
  })

  test.each([
    `image@sha256:${'0123456789abcdef'.repeat(4)}`,
    'slot 0: web-0123456789ab on node-1.example.com: cannot fetch generation 14',
    'Unsupported: container app has a socket of an unknown kind',
  ])('texts that help stay: %s', text => {
    expect(scrubbed(text)).toBe(text)
  })

  test('long texts and patterns that repeat cost little', () => {
    for (const text of [
      'a1B'.repeat(1e6),
      '-----BEGIN '.repeat(1e5),
      'secret'.repeat(1e5),
      '://'.repeat(1e5),
    ])
      expect(scrubbed(text).length).toBeLessThan(10_000)
  })

  test('of a container neither variables nor arguments, of its end not what it has written', () => {
    const text = JSON.stringify(
      kept(
        {
          metadata: {
            name: 'web-p',
            annotations: { note: 'PLANTED' },
            labels: { type: 'primary', team: 'PLANTED' },
          },
          spec: {
            containers: [
              {
                ...{ name: 'app', image: 'app:1', command: ['PLANTED'], args: ['PLANTED'] },
                env: [{ name: 'A', value: 'PLANTED' }],
              },
            ],
            volumes: [{ name: 'v', secret: { secretName: 'PLANTED' } }],
          },
          status: {
            phase: 'Running',
            conditions: [{ type: 'Ready', status: 'False', message: 'PLANTED' }],
            containerStatuses: [
              { name: 'app', state: { terminated: { exitCode: 1, message: 'PLANTED' } }, lastState: {} },
            ],
          },
        },
        pod,
      ),
    )
    expect(text).not.toContain('PLANTED')
    for (const word of ['web-p', 'primary', 'app:1', '"exitCode":1']) expect(text).toContain(word)
  })

  test('of a log only lines of our programs, and of these only known fields', () => {
    const line = {
      level: 'warn',
      time: 't',
      msg: 'cannot save',
      slot: 'shop/web-0',
      text: 'PLANTED',
      leftOut: ['PLANTED'],
    }
    expect(JSON.parse(redactedLine(JSON.stringify(line)) ?? '')).toEqual({
      ...{ level: 'warn', time: 't', msg: 'cannot save', slot: 'shop/web-0' },
    })
    expect(redactedLine('PLANTED output of a program')).toBeUndefined()
    expect(redactedLine('    at run (file:///app/understudy.mjs:1:2)')).toContain('understudy.mjs')
  })
})
