/**
 * How to reach the API server and with which identity: the service account of a pod, or a kubeconfig.
 *
 * client-node parses kubeconfigs and runs credential plugins. Its `KubeConfig` class loads every generated model (0.3 s
 * and 85 MB for a few hundred lines of use) and makes a new connection pool per request. So only its small parts are
 * used, and loaded only when there is a kubeconfig to read.
 */
import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { type Clock, systemClock } from './clock.ts'
import type { Credentials, TlsMaterial } from './credentials.ts'

export interface Connection {
  /** Base URL of the API server, without a trailing slash. */
  readonly server: string
  /** The namespace that the kubeconfig's context or the service account names. */
  readonly namespace: string | undefined
  /** URL of an HTTP proxy to go through. */
  readonly proxyUrl: string | undefined
  /** Returns the current credentials. Cheap: they are cached and renewed inside. Rejects when they cannot be loaded. */
  credentials(): Promise<Credentials>
  /** Reports credentials that the server has refused. The next call reloads them, unless that has happened already. */
  invalidate(refused: Credentials): void
}

export interface Impersonated {
  readonly user: string
  readonly groups: readonly string[]
}

export interface ConnectionOptions {
  /** Path of a kubeconfig. Default: in a pod the service account, else $KUBECONFIG, else ~/.kube/config. */
  readonly kubeconfig?: string | undefined
  /** Context in it. Default: its current-context. */
  readonly context?: string | undefined
  /** The user as whom the API server executes the requests, if the rights allow that. */
  readonly impersonate?: Impersonated | undefined
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly clock?: Clock
  /** Where a pod finds its service account. */
  readonly serviceAccountDir?: string
}

/** How long files and plugin answers are cached. Projected tokens are replaced long before they expire. */
const believeMs = 60_000

/** @throws Error that names the file and the problem. Nothing is sent to the server yet. */
export async function loadConnection(options: ConnectionOptions = {}): Promise<Connection> {
  const env = options.env ?? process.env
  const clock = options.clock ?? systemClock
  const as = (load: () => Promise<Credentials>) => cached(clock, impersonating(load, options.impersonate))
  if (options.kubeconfig !== undefined) return fromKubeconfig([options.kubeconfig], options.context, as)
  const host = env['KUBERNETES_SERVICE_HOST']
  // An explicit context selects a kubeconfig, even inside a pod.
  if (host && options.context === undefined) {
    const dir = options.serviceAccountDir ?? '/var/run/secrets/kubernetes.io/serviceaccount'
    return inCluster(host, env['KUBERNETES_SERVICE_PORT'] ?? '443', dir, as)
  }
  return fromKubeconfig(defaultPaths(env), options.context, as)
}

/** Names of the contexts that a kubeconfig has. @throws Error that names the file and the problem. */
export async function contextNames({
  kubeconfig,
  env = process.env,
}: Pick<ConnectionOptions, 'kubeconfig' | 'env'>): Promise<readonly string[]> {
  const { readContextNames } = await import('./kubeconfig.ts')
  return readContextNames(kubeconfig === undefined ? defaultPaths(env) : [kubeconfig])
}

function defaultPaths(env: NonNullable<ConnectionOptions['env']>): readonly string[] {
  const listed = (env['KUBECONFIG'] ?? '').split(delimiter).filter(path => path !== '')
  return listed.length > 0 ? listed : [join(env['HOME'] ?? homedir(), '.kube', 'config')]
}

async function inCluster(host: string, port: string, dir: string, cache: Cache): Promise<Connection> {
  const namespace = await readFile(join(dir, 'namespace'), 'utf8').then(
    text => text.trim(),
    () => undefined,
  )
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    namespace,
    proxyUrl: undefined,
    ...cache(async () => {
      const [token, ca] = await Promise.all([
        readFile(join(dir, 'token'), 'utf8'),
        readFile(join(dir, 'ca.crt')),
      ])
      return { headers: { authorization: `Bearer ${token.trim()}` }, tls: { ca } }
    }),
  }
}

async function fromKubeconfig(
  paths: readonly string[],
  contextName: string | undefined,
  cacheOf: Cache,
): Promise<Connection> {
  const { createAuthenticator, readKubeconfig } = await import('./kubeconfig.ts')
  const { cluster, context } = await readKubeconfig(paths, contextName)
  const { server, proxyUrl } = cluster
  if (proxyUrl?.startsWith('socks')) {
    throw new Error(`kubeconfig ${paths.join(', ')}: SOCKS proxies are not supported (${proxyUrl})`)
  }
  // Each renewal of the credentials reads the file again: `kubectl config`, `aws eks update-kubeconfig` and the like
  // replace them in it.
  let authenticate = createAuthenticator()
  const cache = cacheOf(async () => authenticate(await readKubeconfig(paths, contextName)))
  return {
    server,
    namespace: context.namespace,
    proxyUrl: proxyUrl ?? undefined,
    credentials: cache.credentials,
    invalidate(refused) {
      // Also drops the plugin's own cache, or the plugin would return the refused answer again.
      if (cache.invalidate(refused)) authenticate = createAuthenticator()
    },
  }
}

type Cache = (load: () => Promise<Credentials>) => ReturnType<typeof cached>

/** An impersonation in the kubeconfig is replaced. */
const impersonating =
  (load: () => Promise<Credentials>, as: Impersonated | undefined) => async (): Promise<Credentials> => {
    const { headers, tls } = await load()
    if (as === undefined) return { headers, tls }
    return { headers: { ...headers, 'impersonate-user': as.user, 'impersonate-group': [...as.groups] }, tls }
  }

/**
 * Calls `load` at most once a minute, shares a running load between callers, and keeps the TLS object while its
 * contents are the same.
 */
function cached(
  clock: Clock,
  load: () => Promise<Credentials>,
): {
  credentials(): Promise<Credentials>
  /** Forgets these credentials. Returns true if they were the current ones. */
  invalidate(refused: Credentials): boolean
} {
  let current: Credentials | undefined
  let pending: Promise<Credentials> | undefined
  let loadedAt = 0

  const renew = async () => {
    const { headers, tls } = await load()
    current = { headers, tls: current && sameTls(current.tls, tls) ? current.tls : tls }
    return current
  }
  return {
    credentials() {
      if (pending && clock.monotonic() - loadedAt < believeMs) return pending
      loadedAt = clock.monotonic()
      const attempt = renew()
      pending = attempt
      attempt.catch(() => {
        // A failure is reported to the callers that waited for it, and is not cached.
        if (pending === attempt) pending = undefined
      })
      return attempt
    },
    invalidate(refused) {
      // When many requests are refused together, only the first one finds its credentials still current.
      if (refused !== current || pending === undefined) return false
      pending = undefined
      return true
    },
  }
}

function sameTls(a: TlsMaterial, b: TlsMaterial): boolean {
  const text = (value: string | Buffer | undefined) => value?.toString('latin1')
  return (
    text(a.ca) === text(b.ca) &&
    text(a.cert) === text(b.cert) &&
    text(a.key) === text(b.key) &&
    a.servername === b.servername &&
    a.rejectUnauthorized === b.rejectUnauthorized
  )
}
