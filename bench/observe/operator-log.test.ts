import { describe, expect, it } from 'vitest'
import { fakeApi } from '../../src/kube/testing/fake-api.ts'
import { actingPasses, passesOver, readLog } from './operator-log.ts'

const set = { namespace: 'bench', name: 'web' }
const log = [
  '{"level":"debug","time":"1970-01-01T00:00:01.000Z","namespace":"bench","name":"web","reconcileID":"a","generation":1,"msg":"reconciling"}',
  '{"level":"info","time":"1970-01-01T00:00:01.010Z","namespace":"bench","name":"web","reconcileID":"a","actions":{"create":2},"msg":"acted"}',
  '{"level":"debug","time":"1970-01-01T00:00:01.020Z","namespace":"bench","name":"other","reconcileID":"b","msg":"reconciling"}',
  'Error: not a line of the log',
  '{"level":"debug","time":"1970-01-01T00:00:01.030Z","namespace":"bench","name":"web","reconcileID":"c","msg":"reconciling"}',
  '{"level":"debug","time":"1970-01-01T00:00:01.040Z","namespace":"bench"',
].join('\n')

describe('the operator log', () => {
  it('tells when passes over one set began and which of them acted', () => {
    expect(passesOver(log, set)).toEqual([
      { at: 1000, reconcileId: 'a' },
      { at: 1030, reconcileId: 'c' },
    ])
    expect(actingPasses(log, set)).toEqual(['a'])
  })

  it('asks the API for whole seconds, rounded down', async () => {
    const asked: unknown[] = []
    const api = fakeApi({
      request: async (method, path, options) => {
        asked.push([method, path, options])
        return { status: 200, body: 'x\n' }
      },
    })
    expect(await readLog(api, { namespace: 'n', name: 'p', container: 'c' }, 1_700_000_000_987)).toBe('x\n')
    expect(asked).toEqual([
      [
        'GET',
        '/api/v1/namespaces/n/pods/p/log',
        { query: { sinceTime: '2023-11-14T22:13:20.000Z', container: 'c' } },
      ],
    ])
  })
})
