import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { access, constants, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Progress, silent } from '../src/terminal/progress.ts'
import { prepareApiserver, waitReady } from './apiserver.ts'
import { ensureArtifacts, missingArtifacts } from './artifacts/artifacts.ts'
import { lastLines } from './exec.ts'
import { freePort } from './free-port.ts'
import { writeKubeconfig } from './kubeconfig.ts'
import { openAuthority } from './pki.ts'
import { checkControlPlanePrerequisites } from './prerequisites.ts'
import { identify, isAlive, type ProcessIdentity } from './process.ts'

export interface ControlPlaneOptions {
  /** Directory for all files, created if missing and removed by stop(). Default: a new one in memory. */
  readonly dir?: string
  /** Further flags of kube-apiserver; they override ours. */
  readonly apiserverArgs?: readonly string[]
  /**
   * Makes the API server insist on a pod's service account. Off by default: no controller runs here that would create
   * the `default` account of a namespace.
   */
  readonly serviceAccountAdmission?: boolean
  /** Longest wait for the API server to be ready, ms. Default 60,000. */
  readonly timeoutMs?: number
  readonly progress?: Progress
  readonly signal?: AbortSignal
}

/** etcd and kube-apiserver on this machine's loopback. */
export interface ControlPlane {
  readonly dir: string
  /** https://127.0.0.1:PORT */
  readonly server: string
  /** The administrator's (system:masters). */
  readonly kubeconfigPath: string
  readonly caPath: string
  /** One JSON object a line (level Metadata) for every request. */
  readonly auditLogPath: string
  readonly logPaths: { readonly etcd: string; readonly apiserver: string }
  /** Path of kubectl. */
  readonly kubectl: string
  /**
   * Writes a kubeconfig for a user, authenticated by certificate, and returns its path. RBAC decides on the user's
   * rights.
   */
  kubeconfigFor(user: string, groups?: readonly string[]): Promise<string>
  /** Stops kube-apiserver (SIGTERM drains, SIGKILL does not) and leaves etcd running. */
  stopApiserver(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>
  /** Starts kube-apiserver again on the same port and waits until it is ready. */
  startApiserver(): Promise<void>
  /** Stops both and removes the directory. */
  stop(): Promise<void>
}

/**
 * Starts etcd and kube-apiserver as plain processes, for tests that need the real API and no nodes. Nothing is durable
 * (memory, no fsync). Needs no root. Both processes die with the calling process, however that ends.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const { progress, signal } = options
  const cold = (await missingArtifacts(['kube', 'etcd'])).length > 0
  await (progress ?? silent).step('prerequisites', step =>
    checkControlPlanePrerequisites({ cold }, step, signal),
  )
  const { kube, etcd } = await ensureArtifacts(['kube', 'etcd'], { progress, signal })
  const dir = options.dir ?? (await temporaryDirectory())
  const pkiDir = join(dir, 'pki')
  await mkdir(pkiDir, { recursive: true, mode: 0o700 })
  const logPaths = { etcd: join(dir, 'etcd.log'), apiserver: join(dir, 'kube-apiserver.log') }
  const auditLogPath = join(dir, 'audit.log')
  const running: Child[] = []
  let apiserver: Child | undefined
  try {
    const authority = await openAuthority(pkiDir, signal)
    const port = await freePort()
    const files = await prepareApiserver({
      pkiDir,
      authority,
      address: '127.0.0.1',
      port,
      etcd: socket(dir, 'client'),
      serviceCidr: '10.0.0.0/24',
      serviceAddress: '10.0.0.1',
      auditLogPath,
      disabledAdmissionPlugins: options.serviceAccountAdmission === true ? [] : ['ServiceAccount'],
      // Validation refuses loopback endpoints, and no client here looks for the `kubernetes` Service.
      extraArgs: ['--endpoint-reconciler-type=none', ...(options.apiserverArgs ?? [])],
    })
    running.push(startChild(join(etcd, 'etcd'), etcdArguments(dir), logPaths.etcd, dir))
    const tls = {
      ca: await readFile(authority.caPath),
      cert: await readFile(files.admin.certPath),
      key: await readFile(files.admin.keyPath),
    }
    const server = `https://127.0.0.1:${port}`
    const startApiserver = async (): Promise<void> => {
      const child = startChild(join(kube, 'kube-apiserver'), files.args, logPaths.apiserver, dir)
      apiserver = child
      running.push(child)
      const timeout = AbortSignal.timeout(options.timeoutMs ?? 60_000)
      const either = signal === undefined ? timeout : AbortSignal.any([signal, timeout])
      try {
        await waitReady(
          { address: '127.0.0.1', port },
          tls,
          () => running.map(it => it.failure()).find(Boolean),
          either,
        )
      } catch (error) {
        if (!timeout.aborted || signal?.aborted === true) throw error
        const tail = lastLines(await readFile(logPaths.apiserver, 'utf8'), 12)
        throw new Error(`kube-apiserver was not ready in time; ${logPaths.apiserver} ends with\n${tail}`, {
          cause: error,
        })
      }
    }
    await startApiserver()
    const kubeconfig = async (name: string, user: string, groups: readonly string[]): Promise<string> =>
      writeKubeconfig({
        path: join(dir, `${name}.kubeconfig`),
        name: 'control-plane',
        server,
        user,
        caPath: authority.caPath,
        certificate: await authority.issue({
          name,
          commonName: user,
          organizations: groups,
          usage: 'client',
        }),
      })
    let users = 0
    return {
      dir,
      server,
      kubeconfigPath: await kubeconfig('admin', 'kubernetes-admin', ['system:masters']),
      caPath: authority.caPath,
      auditLogPath,
      logPaths,
      kubectl: join(kube, 'kubectl'),
      kubeconfigFor: (user, groups = []) => kubeconfig(`user-${users++}`, user, groups),
      async stopApiserver(how = 'SIGTERM') {
        if (apiserver === undefined) return
        running.splice(running.indexOf(apiserver), 1)
        await apiserver.stop(how)
        apiserver = undefined
      },
      startApiserver,
      stop: () => stopAll(running, dir),
    }
  } catch (error) {
    await stopAll(running, dir, options.dir !== undefined)
    throw error
  }
}

const socket = (dir: string, name: string): string => `unix://${join(dir, name)}`

const etcdArguments = (dir: string): readonly string[] => [
  '--name=playground',
  `--data-dir=${join(dir, 'etcd')}`,
  `--listen-client-urls=${socket(dir, 'client')}`,
  `--listen-peer-urls=${socket(dir, 'peer')}`,
  // No client reads a single member's addresses, but etcd insists on valid ones.
  '--advertise-client-urls=http://127.0.0.1:2379',
  '--initial-advertise-peer-urls=http://127.0.0.1:2380',
  '--initial-cluster=playground=http://127.0.0.1:2380',
  '--unsafe-no-fsync',
  '--log-level=warn',
]

interface Child {
  /** Returns why the process ended, unless `stop` ended it. */
  failure(): Error | undefined
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

function startChild(program: string, args: readonly string[], logPath: string, cwd: string): Child {
  const log = openSync(logPath, 'a')
  // setpriv's death signal: a test run that is killed leaves no servers behind. Own process group: Ctrl-C in the
  // terminal first ends the test run, whose teardown then stops the servers.
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', program, ...args], {
    stdio: ['ignore', log, log],
    detached: true,
    cwd,
  })
  closeSync(log)
  let failure: Error | undefined
  let asked = false
  const ended = new Promise<void>(resolve => {
    child.on('error', error => {
      failure = error
      resolve()
    })
    child.on('exit', (code, signal) => {
      if (!asked) {
        // The directory may be gone by the time the error is read, so the error contains the end of the log.
        const tail = lastLines(readFileSync(logPath, 'utf8'), 12)
        failure = new Error(
          `${program} ended (${signal ?? `exit code ${code}`}); ${logPath} ends with\n${tail}`,
        )
      }
      resolve()
    })
  })
  return {
    failure: () => failure,
    async stop(signal) {
      asked = true
      child.kill(signal)
      // Draining long watches may take long; nothing here is worth the wait.
      const hurry = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await ended
      clearTimeout(hurry)
    },
  }
}

/** Nothing is worth draining on the way out: SIGKILL. Logs of a failed start stay in the caller's directory. */
async function stopAll(running: Child[], dir: string, keep = false): Promise<void> {
  await Promise.all(running.splice(0).map(child => child.stop('SIGKILL')))
  if (!keep) await rm(dir, { recursive: true, force: true })
}

const PREFIX = 'understudy-api-'

/**
 * Creates a directory in memory. Before that, it removes the directories of killed test runs, which would stay until a
 * reboot.
 */
async function temporaryDirectory(): Promise<string> {
  const parent = await memoryDirectory()
  for (const name of await readdir(parent)) {
    if (!name.startsWith(PREFIX)) continue
    const owner = await readFile(join(parent, name, OWNER), 'utf8').catch(() => undefined)
    if (owner === undefined || (await isAlive(JSON.parse(owner) as ProcessIdentity))) continue
    await rm(join(parent, name), { recursive: true, force: true })
  }
  const dir = await mkdtemp(join(parent, PREFIX))
  await writeFile(join(dir, OWNER), JSON.stringify(await identify(process.pid)))
  return dir
}

const OWNER = 'owner.json'

async function memoryDirectory(): Promise<string> {
  try {
    await access('/dev/shm', constants.W_OK)
    return '/dev/shm'
  } catch {
    return tmpdir()
  }
}
