import { expect, it } from 'vitest'
import { fencedIn } from './fenced.ts'

const line = (more: object) => JSON.stringify({ level: 'info', msg: 'a primary runs again', ...more })

it('fences of this round are read from the log of a sentinel', () => {
  const log = [
    line({ time: 900, name: 'uid-0', count: 1, ms: 40 }),
    line({ time: 1_500, msg: 'a primary is stopped', name: 'uid-1', count: 1, us: 800 }),
    line({ time: 1_700, name: 'uid-1', count: 1, ms: 200 }),
    '{"level":"info","time":1800,"msg":"a pri',
  ].join('\n')
  expect(fencedIn(log, 1_000, -1_000)).toEqual([{ type: 'fenced', at: 500, uid: 'uid-1', ms: 200 }])
})
