import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { fakeApi } from '../../src/kube/testing/fake-api.ts'
import { actingPasses, parseLogLine, passesOver, readLog } from './operator-log.ts'

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

  it('§7.9: lines of the operator itself have words as levels and ISO times, and are read here', () => {
    const main = new URL('../../src/main.ts', import.meta.url).pathname
    // It logs two lines, and ends.
    const args = ['operator', '--kubeconfig=/nonexistent', '--health-port=0', '--metrics-port=0']
    const { stdout } = spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' })
    const lines = stdout.trim().split('\n').map(parseLogLine)
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(lines).toMatchObject([
      { level: 'info', time },
      { level: 'fatal', time },
    ])
    const [line] = lines
    const began = JSON.stringify({ ...line, ...set, reconcileID: 'a', msg: 'reconciling' })
    expect(passesOver(began, set)).toEqual([{ at: Date.parse(String(line?.['time'])), reconcileId: 'a' }])
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
