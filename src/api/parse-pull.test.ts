import { describe, expect, it } from 'vitest'
import { forged } from '../../test/support/forged.ts'
import type { BackupPodSet } from './backuppodset.ts'
import { parseSet } from './parse.ts'

const app = { name: 'app', image: 'app' }
const parse = (checkpoint: object, containers: readonly object[] = [app], spec: object = {}) =>
  parseSet(
    forged<BackupPodSet>({
      metadata: { name: 'set', namespace: 'ns', uid: 'u', resourceVersion: '1', generation: 1 },
      spec: { checkpoint, template: { spec: { containers } }, ...spec },
    }),
  )

function pullOf(...given: Parameters<typeof parse>) {
  const parsed = parse(...given)
  if (!parsed.ok) throw new Error(parsed.message)
  return parsed.set
}

describe('state over HTTP', () => {
  it('D3.http: is asked for by source http, keeps no memory of processes, and rolls only when told to', () => {
    const set = pullOf({ source: 'http', interval: '2s', http: { port: 8080 } })
    expect(set.memory).toBeUndefined()
    expect(set.updateStrategy).toBe('OnDelete')
    expect(set.pull).toEqual({
      intervalMs: 2_000,
      port: 8080,
      path: '/state',
      headers: [],
      maxBytes: 16 * 2 ** 20,
      timeoutMs: 5_000,
      restoreMs: 60_000,
      push: { path: '/state', method: 'POST', headers: [], everyInterval: false },
      container: 'app',
    })
    const rolling = { updateStrategy: { type: 'RollingUpdate' } }
    expect(pullOf({ source: 'http', http: { port: 1 } }, [app], rolling).updateStrategy).toBe('RollingUpdate')
    expect(pullOf({}).pull).toBeUndefined()
    expect(pullOf({ source: 'criu' }).pull).toBeUndefined()
  })

  it('the push goes where the pull comes from, unless it is said', () => {
    const http = {
      port: 80,
      path: '/a?b=c',
      push: { path: '/d', method: 'PUT', headers: [{ name: 'X', value: 'y' }] },
    }
    expect(pullOf({ source: 'http', http }).pull?.push).toEqual({
      path: '/d',
      method: 'PUT',
      headers: [{ name: 'X', value: 'y' }],
      everyInterval: false,
    })
    expect(pullOf({ source: 'http', http: { port: 80, path: '/a?b=c' } }).pull?.push.path).toBe('/a?b=c')
  })

  it('restarts that end the state are those of the container with the port', () => {
    const proxy = { name: 'proxy', image: 'proxy', ports: [{ containerPort: 443 }] }
    const web = { ...app, name: 'web', ports: [{ containerPort: 81 }, { containerPort: 80 }] }
    expect(pullOf({ source: 'http', http: { port: 80 } }, [proxy, web]).pull?.container).toBe('web')
    expect(pullOf({ source: 'http', http: { port: 9 } }, [proxy, web]).pull?.container).toBe('proxy')
  })

  it.each([
    ['spec.checkpoint.source', { source: 'ftp' }, 'one of criu, http'],
    ['spec.checkpoint.http.port', { source: 'http', http: {} }, 'a port number'],
    ['spec.checkpoint.http.path', { source: 'http', http: { port: 1, path: 'x' } }, 'a path such as /state'],
    [
      'spec.checkpoint.http.path',
      { source: 'http', http: { port: 1, path: '/a b' } },
      'a path such as /state',
    ],
    [
      'spec.checkpoint.http.maxSize',
      { source: 'http', http: { port: 1, maxSize: '1Gi' } },
      'from 1 to 256Mi',
    ],
    [
      'spec.checkpoint.http.headers[0]',
      { source: 'http', http: { port: 1, headers: [{ name: 'A', value: 'b\nC: d' }] } },
      'a header with a valid name and value',
    ],
  ])('names %s and what it takes', (field, checkpoint, message) => {
    const parsed = parse(checkpoint)
    expect(parsed).toMatchObject({ ok: false, code: 'InvalidValue', field })
    expect(parsed.ok ? '' : parsed.message).toContain(message)
  })
})
