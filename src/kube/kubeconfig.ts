/**
 * Reads kubeconfigs and their credentials. Loaded only where there is a kubeconfig.
 *
 * client-node's parser and its credential-plugin runner are imported by file: they take 10 ms to load, its index 0.6 s.
 */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import {
  type Cluster,
  type Context,
  newClusters,
  newContexts,
  newUsers,
  type User,
} from '@kubernetes/client-node/dist/config_types.js'
import { ExecAuth } from '@kubernetes/client-node/dist/exec_auth.js'
import { parse } from 'yaml'
import type { Credentials, TlsMaterial } from './credentials.ts'

/** A context of a kubeconfig with its cluster and user. File names in it are absolute. */
export interface Resolved {
  readonly context: Context
  readonly cluster: Cluster
  readonly user: User | undefined
  readonly tokenFile: string | undefined
}

interface Document {
  readonly clusters: readonly Cluster[]
  readonly contexts: readonly Context[]
  readonly users: readonly User[]
  readonly tokenFiles: ReadonlyMap<string, string>
  readonly currentContext: string | undefined
}

/**
 * Merges the files as kubectl does (the first file that sets a value wins) and resolves one context.
 * @throws Error naming the file and the missing or broken part.
 */
export async function readKubeconfig(
  paths: readonly string[],
  contextName: string | undefined,
): Promise<Resolved> {
  const documents = await Promise.all(paths.map(readDocument))
  const where = `kubeconfig ${paths.join(', ')}`
  const name = contextName ?? documents.find(d => d.currentContext)?.currentContext
  if (!name) throw new Error(`${where}: no current-context; set one, or choose a context`)
  const context = documents.flatMap(d => d.contexts).find(c => c.name === name)
  if (!context) throw new Error(`${where}: no context ${JSON.stringify(name)}`)
  const cluster = documents.flatMap(d => d.clusters).find(c => c.name === context.cluster)
  if (!cluster) throw new Error(`${where}: context ${name} refers to an unknown cluster (${context.cluster})`)
  const owner = documents.find(d => d.users.some(u => u.name === context.user))
  if (context.user && !owner)
    throw new Error(`${where}: context ${name} refers to an unknown user (${context.user})`)
  return {
    context,
    cluster,
    user: owner?.users.find(u => u.name === context.user),
    tokenFile: owner?.tokenFiles.get(context.user),
  }
}

export async function readContextNames(paths: readonly string[]): Promise<readonly string[]> {
  const documents = await Promise.all(paths.map(readDocument))
  return [...new Set(documents.flatMap(({ contexts }) => contexts.map(({ name }) => name)))]
}

async function readDocument(path: string): Promise<Document> {
  try {
    const raw: unknown = parse(await readFile(path, 'utf8')) ?? {}
    if (typeof raw !== 'object') throw new Error('not a YAML mapping')
    const { clusters, contexts, users, 'current-context': currentContext } = raw as Record<string, unknown>
    // client-node reads a token-file only once, and relative to the working directory. So it is removed here, and read
    // at each renewal instead.
    const tokenFiles = new Map<string, string>()
    const withoutTokenFiles = listOf(users).map(entry => {
      const { name, user } = entry as { name?: string; user?: Record<string, unknown> }
      const { 'token-file': lower, tokenFile = lower, ...rest } = user ?? {}
      if (name && typeof tokenFile === 'string') tokenFiles.set(name, absolute(path, tokenFile))
      return { name, user: rest }
    })
    return {
      clusters: newClusters(listOf(clusters)).map(c => ({ ...c, ...file('caFile', path, c.caFile) })),
      contexts: newContexts(listOf(contexts)),
      users: newUsers(withoutTokenFiles).map(u => ({
        ...u,
        ...file('certFile', path, u.certFile),
        ...file('keyFile', path, u.keyFile),
      })),
      tokenFiles,
      currentContext: typeof currentContext === 'string' ? currentContext : undefined,
    }
  } catch (cause) {
    throw new Error(`cannot read kubeconfig ${path}: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    })
  }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const absolute = (kubeconfig: string, path: string) => resolve(dirname(kubeconfig), path)

const file = (key: string, kubeconfig: string, path: string | undefined | null) =>
  path ? { [key]: absolute(kubeconfig, path) } : {}

/** Turns a resolved context into credentials. Caches the answers of credential plugins until they expire. */
export function createAuthenticator(): (resolved: Resolved) => Promise<Credentials> {
  const exec = new ExecAuth()

  return async ({ cluster, user, tokenFile }) => {
    const headers: Record<string, string> = {}
    const tls: { -readonly [Key in keyof TlsMaterial]: TlsMaterial[Key] } = {}
    const ca = await material(cluster.caFile, cluster.caData)
    if (ca) tls.ca = ca
    if (cluster.tlsServerName) tls.servername = cluster.tlsServerName
    if (cluster.skipTLSVerify) tls.rejectUnauthorized = false
    if (!user) return { headers, tls }

    const [cert, key] = await Promise.all([
      material(user.certFile, user.certData),
      material(user.keyFile, user.keyData),
    ])
    if (cert) tls.cert = cert
    if (key) tls.key = key
    if (user.impersonateUser) headers['impersonate-user'] = user.impersonateUser
    if (user.username) {
      headers['authorization'] =
        `Basic ${Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64')}`
    }
    if (exec.isAuthProvider(user)) {
      const answer: { headers?: Record<string, string>; cert?: string; key?: string } = {}
      await exec.applyAuthentication(user, answer)
      if (answer.cert) tls.cert = answer.cert
      if (answer.key) tls.key = answer.key
      const authorization = answer.headers?.['Authorization']
      if (authorization) headers['authorization'] = authorization
    } else if (user.authProvider) {
      throw new Error(
        `user ${user.name}: built-in auth providers (${user.authProvider.name}) are obsolete; use its exec plugin`,
      )
    }
    const token = tokenFile ? (await readFile(tokenFile, 'utf8')).trim() : user.token
    if (token) headers['authorization'] = `Bearer ${token}`
    return { headers, tls }
  }
}

async function material(
  path: string | undefined | null,
  base64: string | undefined | null,
): Promise<Buffer | undefined> {
  if (path) return readFile(path)
  return base64 ? Buffer.from(base64, 'base64') : undefined
}
