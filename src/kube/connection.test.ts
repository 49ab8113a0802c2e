import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createFakeClock } from './clock.ts'
import { loadConnection } from './connection.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'connection-'))
})
afterEach(() => rm(dir, { recursive: true }))

const file = async (name: string, text: string) => {
  const path = join(dir, name)
  await writeFile(path, text)
  return path
}
const base64 = (text: string) => Buffer.from(text).toString('base64')

const kubeconfig = (user: object, more: { cluster?: object; contexts?: object[]; current?: string } = {}) =>
  file(
    'config',
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': more.current ?? 'one',
      clusters: [
        {
          name: 'c',
          cluster: {
            server: 'https://10.0.0.1:6443/',
            'certificate-authority-data': base64('CA'),
            ...more.cluster,
          },
        },
      ],
      users: [{ name: 'u', user }],
      contexts: [
        { name: 'one', context: { cluster: 'c', user: 'u', namespace: 'team' } },
        ...(more.contexts ?? []),
      ],
    }),
  )

describe('kubeconfig', () => {
  test('client certificates, inline', async () => {
    const path = await kubeconfig({
      'client-certificate-data': base64('CERT'),
      'client-key-data': base64('KEY'),
    })
    const connection = await loadConnection({ kubeconfig: path })
    expect(connection).toMatchObject({
      server: 'https://10.0.0.1:6443',
      namespace: 'team',
      proxyUrl: undefined,
    })
    const { headers, tls } = await connection.credentials()
    expect(headers).toEqual({})
    expect([tls.ca, tls.cert, tls.key].map(String)).toEqual(['CA', 'CERT', 'KEY'])
  })

  test('files are relative to the kubeconfig, and renewed ones are noticed', async () => {
    await file('ca.pem', 'CA file')
    await file('cert.pem', 'first')
    await file('key.pem', 'KEY')
    const clock = createFakeClock()
    const connection = await loadConnection({
      kubeconfig: await kubeconfig(
        { 'client-certificate': 'cert.pem', 'client-key': './key.pem' },
        { cluster: { 'certificate-authority-data': undefined, 'certificate-authority': 'ca.pem' } },
      ),
      clock,
    })
    const first = await connection.credentials()
    expect([first.tls.ca, first.tls.cert].map(String)).toEqual(['CA file', 'first'])
    await clock.advance(60_000)
    // Same contents, same object: no new connection is needed.
    expect((await connection.credentials()).tls).toBe(first.tls)
    await file('cert.pem', 'second')
    expect((await connection.credentials()).tls).toBe(first.tls)
    await clock.advance(60_000)
    expect(String((await connection.credentials()).tls.cert)).toBe('second')
  })

  test('tokens: inline, and from a file that is read again', async () => {
    const inline = await loadConnection({ kubeconfig: await kubeconfig({ token: 'abc' }) })
    expect((await inline.credentials()).headers).toEqual({ authorization: 'Bearer abc' })

    await file('token', 'one\n')
    const clock = createFakeClock()
    const connection = await loadConnection({ kubeconfig: await kubeconfig({ tokenFile: 'token' }), clock })
    expect((await connection.credentials()).headers['authorization']).toBe('Bearer one')
    await file('token', 'two\n')
    await clock.advance(60_000)
    expect((await connection.credentials()).headers['authorization']).toBe('Bearer two')
  })

  test('basic authentication, impersonation, server name, unverified TLS, proxy', async () => {
    const connection = await loadConnection({
      kubeconfig: await kubeconfig(
        { username: 'me', password: 'secret', as: 'system:serviceaccount:a:b' },
        {
          cluster: {
            'insecure-skip-tls-verify': true,
            'tls-server-name': 'api.internal',
            'proxy-url': 'http://proxy:3128',
          },
        },
      ),
    })
    expect(connection.proxyUrl).toBe('http://proxy:3128')
    const { headers, tls } = await connection.credentials()
    expect(headers).toEqual({
      authorization: `Basic ${base64('me:secret')}`,
      'impersonate-user': 'system:serviceaccount:a:b',
    })
    expect(tls).toMatchObject({ rejectUnauthorized: false, servername: 'api.internal' })
  })

  test('a credential plugin is run once for many, and anew after its answer was refused', async () => {
    const count = join(dir, 'runs')
    const plugin = await file(
      'plugin.mjs',
      `import { appendFileSync } from 'node:fs'
       appendFileSync(${JSON.stringify(count)}, 'x')
       console.log(JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential',
         status: { token: process.env.PREFIX + process.argv[2] } }))`,
    )
    const connection = await loadConnection({
      kubeconfig: await kubeconfig({
        exec: {
          apiVersion: 'client.authentication.k8s.io/v1',
          command: process.execPath,
          args: [plugin, 'token'],
          env: [{ name: 'PREFIX', value: 'plugin-' }],
        },
      }),
    })
    const all = await Promise.all(Array.from({ length: 20 }, () => connection.credentials()))
    expect(new Set(all.map(({ headers }) => headers['authorization']))).toEqual(
      new Set(['Bearer plugin-token']),
    )
    expect(await readFile(count, 'utf8')).toBe('x')
    const [refused] = all
    if (!refused) throw new Error('no credentials')
    // Twenty requests were refused together.
    for (let i = 0; i < 20; i++) {
      connection.invalidate(refused)
      await connection.credentials()
    }
    expect(await readFile(count, 'utf8')).toBe('xx')
  })

  test('a plugin that fails says so to those who wait, and is tried again', async () => {
    const connection = await loadConnection({
      kubeconfig: await kubeconfig({
        exec: { command: process.execPath, args: ['-e', 'console.error("login first"); process.exit(1)'] },
      }),
    })
    await expect(connection.credentials()).rejects.toThrow('login first')
    await expect(connection.credentials()).rejects.toThrow('login first')
  })

  test('a context by name, also from a second file', async () => {
    const first = await kubeconfig({ token: 'one' })
    const second = await file(
      'second',
      JSON.stringify({
        'current-context': 'two',
        clusters: [{ name: 'd', cluster: { server: 'https://10.0.0.2' } }],
        users: [{ name: 'v', user: { token: 'two' } }],
        contexts: [{ name: 'two', context: { cluster: 'd', user: 'v' } }],
      }),
    )
    const env = { KUBECONFIG: `${first}:${second}` }
    expect((await loadConnection({ env })).server).toBe('https://10.0.0.1:6443')
    const connection = await loadConnection({ env, context: 'two' })
    expect(connection.server).toBe('https://10.0.0.2')
    expect((await connection.credentials()).headers['authorization']).toBe('Bearer two')
  })

  test.each([
    ['no file', () => join(dir, 'absent'), /cannot read kubeconfig .*absent/],
    ['no YAML', () => file('bad', '{'), /cannot read kubeconfig/],
    ['no mapping', () => file('text', 'hello'), /not a YAML mapping/],
    ['an empty file', () => file('empty', ''), /no current-context/],
    ['an unknown context', () => kubeconfig({}, { current: 'other' }), /no context "other"/],
    [
      'an unknown cluster',
      () => kubeconfig({}, { current: 'x', contexts: [{ name: 'x', context: { cluster: 'y', user: 'u' } }] }),
      /unknown cluster \(y\)/,
    ],
    [
      'an unknown user',
      () => kubeconfig({}, { current: 'x', contexts: [{ name: 'x', context: { cluster: 'c', user: 'y' } }] }),
      /unknown user \(y\)/,
    ],
    ['a SOCKS proxy', () => kubeconfig({}, { cluster: { 'proxy-url': 'socks5://p:1' } }), /SOCKS/],
  ])('%s is said', async (_, make, message) => {
    await expect(loadConnection({ kubeconfig: await make() })).rejects.toThrow(message)
  })

  test('an obsolete auth provider is named when it is needed', async () => {
    const connection = await loadConnection({
      kubeconfig: await kubeconfig({ 'auth-provider': { name: 'gcp', config: {} } }),
    })
    await expect(connection.credentials()).rejects.toThrow(/gcp.*exec plugin/)
  })
})

describe('in a pod', () => {
  const env = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443', KUBECONFIG: '/nowhere' }

  test('token and CA are read again, and the connection stays while the CA does', async () => {
    await file('token', 'one\n')
    await file('ca.crt', 'CA')
    await file('namespace', 'team\n')
    const clock = createFakeClock()
    const connection = await loadConnection({ env, clock, serviceAccountDir: dir })
    expect(connection).toMatchObject({ server: 'https://10.96.0.1:443', namespace: 'team' })
    const first = await connection.credentials()
    expect(first.headers).toEqual({ authorization: 'Bearer one' })
    await file('token', 'two\n')
    await clock.advance(59_999)
    expect((await connection.credentials()).headers['authorization']).toBe('Bearer one')
    await clock.advance(1)
    const second = await connection.credentials()
    expect(second.headers['authorization']).toBe('Bearer two')
    expect(second.tls).toBe(first.tls)
  })

  test('a refused token is read again at once', async () => {
    await file('token', 'one')
    await file('ca.crt', 'CA')
    const connection = await loadConnection({ env, serviceAccountDir: dir })
    const refused = await connection.credentials()
    await file('token', 'two')
    connection.invalidate(refused)
    expect((await connection.credentials()).headers['authorization']).toBe('Bearer two')
  })

  test('an IPv6 address is bracketed', async () => {
    const connection = await loadConnection({
      env: { ...env, KUBERNETES_SERVICE_HOST: 'fd00::1' },
      serviceAccountDir: dir,
    })
    expect(connection.server).toBe('https://[fd00::1]:443')
  })

  test('a kubeconfig that is asked for wins', async () => {
    const path = await kubeconfig({ token: 'abc' })
    expect((await loadConnection({ env, kubeconfig: path })).server).toBe('https://10.0.0.1:6443')
  })
})
