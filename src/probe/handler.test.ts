import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseProbe, portOf } from './handler.ts'

const container = {
  name: 'app',
  ports: [
    { name: 'metrics', containerPort: 9090 },
    { name: 'web', containerPort: 8080 },
  ],
}
const http = (httpGet: { port: number | string; path?: string; scheme?: string; host?: string }) =>
  parseProbe({ httpGet }, container)
const pathOf = (path: string | undefined) => {
  const parsed = http({ port: 80, ...(path === undefined ? {} : { path }) })
  return typeof parsed === 'object' && parsed.handler.type === 'http' ? parsed.handler.path : parsed
}

/** Text of any UTF-16 code units, lone surrogates included. */
const anyText = fc.string({ unit: fc.nat(0xffff).map(unit => String.fromCharCode(unit)) })

describe('a probe of a template', () => {
  test('has the defaults of the API', () => {
    expect(parseProbe({ tcpSocket: { port: 1 } }, container)).toEqual({
      handler: { type: 'tcp', port: 1 },
      timing: {
        initialDelayMs: 0,
        periodMs: 10_000,
        timeoutMs: 1000,
        successThreshold: 1,
        failureThreshold: 3,
      },
    })
  })

  test.each([
    ['httpGet', { httpGet: { port: 80, host: '169.254.169.254' } }],
    ['tcpSocket', { tcpSocket: { port: 80, host: 'internal.example' } }],
  ])('D10.probe-host: %s asks nobody but the pod', (_, probe) => {
    expect(parseProbe(probe, container)).toContain('names a host')
  })

  test('has its times in milliseconds', () => {
    const parsed = parseProbe(
      {
        grpc: { port: 5, service: 'a' },
        initialDelaySeconds: 1,
        periodSeconds: 2,
        timeoutSeconds: 3,
        successThreshold: 4,
        failureThreshold: 5,
      },
      container,
    )
    expect(parsed).toEqual({
      handler: { type: 'grpc', port: 5, service: 'a' },
      timing: {
        initialDelayMs: 1000,
        periodMs: 2000,
        timeoutMs: 3000,
        successThreshold: 4,
        failureThreshold: 5,
      },
    })
  })

  test.each([
    [8081, 8081],
    ['web', 8080],
    ['81', 81],
    ['nope', 'no port is named nope'],
    [0, 'no port has the number 0'],
    [65536, 'no port has the number 65536'],
    [-1, 'no port has the number -1'],
    ['99999', 'no port has the number 99999'],
    [1.5, 'no port is named 1.5'],
    [undefined, 'no port is named undefined'],
  ])('port %s is %s', (port, expected) => {
    expect(portOf(port, container)).toBe(expected)
  })

  test('says what is wrong with it', () => {
    expect(http({ port: 'nope' })).toBe('container app: no port is named nope')
    expect(http({ port: 80, scheme: 'GOPHER' })).toBe('container app: unknown scheme GOPHER')
    expect(parseProbe({}, container)).toBe('container app: the probe has no known handler')
  })

  test.each([
    [undefined, '/'],
    ['', '/'],
    ['/', '/'],
    ['healthz', '/healthz'],
    ['/a/../b?x=1&y=%20#part', '/a/../b?x=1&y=%20'],
    ['/with space/é', '/with%20space/%C3%A9'],
    // The agent ignores the host in a path.
    ['//elsewhere/x', '/x'],
    ['http://elsewhere/x?y', '/x?y'],
    ['/half\ud800', '/half%EF%BF%BD'],
  ])('path %s is asked as %s', (path, expected) => {
    expect(pathOf(path)).toBe(expected)
  })

  test('every path can stand in a request line', () => {
    fc.assert(
      fc.property(anyText, path => {
        expect(pathOf(path)).toMatch(/^\/[\x21-\x7e]*$/)
      }),
    )
  })
})
