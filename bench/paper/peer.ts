import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { compileStatic } from '../../build/compile.ts'
import { cachedImage } from '../../images/build.ts'
import { run } from '../../playground/exec.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { type BenchContext, demand } from '../bench.ts'
import { withoutPrecedence } from '../machine.ts'
import { counterTemplate, setOf } from '../objects.ts'
import type { PassLine } from '../observe/operator-log.ts'
import type { Controller } from './controller.ts'

/**
 * The paper's own controller, measured on this machine by users who have built it: it is not part of this repository.
 */
export interface Peer {
  readonly controller: Controller
  /** Ends it and deletes its CRD from the cluster. */
  stop(): Promise<void>
}

/** Its source has this name. */
const gateImage = 'destinysky/coldbackup:0.1'
const gateSource = fileURLToPath(new URL('./peer-gate.c', import.meta.url))
const crd = 'customresourcedefinition/backuppodsets.backup.example.com'
const startMs = 3_000

/**
 * Starts the paper's own controller, outside the cluster with an administrator's rights, as its README does.
 *
 * @param checkout built checkout of its repository: the program is bin/manager, the CRD is in config/crd/bases
 * @throws Error if the cluster already has the CRD: both controllers use the same name
 */
export async function startPeer(context: BenchContext, checkout: string): Promise<Peer> {
  const { images, signal } = context
  const cluster = demand(context.playground, 'a playground')
  const kubectl = (args: readonly string[], within: AbortSignal = signal) =>
    run([cluster.kubectl, '--kubeconfig', cluster.kubeconfigPath, ...args], { signal: within })
  if ((await kubectl(['get', crd, '--ignore-not-found', '--output', 'name'])) !== '')
    throw new Error(
      `cluster ${cluster.name} already has the operator, whose kind has the same name: npm run playground -- --name ${cluster.name} down`,
    )
  const gate = await cachedImage('peer-gate', {
    ref: gateImage,
    layers: [
      {
        files: [
          {
            type: 'file',
            path: '/gate',
            mode: 0o755,
            content: { source: await compileStatic(gateSource, { signal }) },
          },
        ],
      },
    ],
    config: { entrypoint: ['/gate'] },
  })
  await cluster.loadImages([gate.path], { signal })
  const bases = join(checkout, 'config/crd/bases')
  const kinds = (await readdir(bases)).map(file => join(bases, file))
  await kubectl(['apply', ...kinds.flatMap(file => ['--filename', file])])

  const [command = '', ...args] = cluster.argvInNetwork('cp', [
    join(checkout, 'bin/manager'),
    ...['--metrics-bind-address=0', '--health-probe-bind-address=0'],
    `--kubeconfig=${cluster.kubeconfigPath}`,
  ])
  // In a session of its own: in this one it would have the observer's precedence.
  const child = await withoutPrecedence(async () =>
    spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true }),
  )
  const ended = once(child, 'exit')
  let lines: string[] = []
  createInterface({ input: child.stderr }).on('line', line => lines.push(line))
  const stop = async () => {
    child.kill()
    await ended
    // A time limit of its own: after Ctrl-C the signal has fired already.
    await kubectl(['delete', crd], AbortSignal.timeout(60_000))
  }
  try {
    await systemClock.sleep(startMs, signal)
  } catch (error) {
    await stop()
    throw error
  }

  return {
    controller: {
      podsOf: set => `app=${set}`,
      setOf: (name, counts) =>
        setOf(name, counts, counterTemplate(images.counter, name), {
          // Its schema requires all three.
          strategy: Object.fromEntries(strategies.map(key => [key, 'random'])),
          schedulerName: 'default-scheduler',
          wakeupTimeout: 10,
        }),
      gate: 'coldbackup',
      async listen(set) {
        lines = []
        return async () => {
          if (child.exitCode !== null)
            throw new Error(`the paper's controller has ended:\n${lines.slice(-20).join('\n')}`)
          return peerPasses(lines, set)
        }
      },
    },
    stop,
  }
}

const strategies = [
  'init',
  ...['unallocatedToColdbackup', 'unallocatedToHotbackup', 'unallocatedToReplicas'],
  ...['coldbackupToHotbackup', 'coldbackupToReplicas', 'hotbackupToReplicas'],
]

/** Returns the starts of its passes over one set. A line: time, level, logger, message, JSON, separated by tabs. */
export function peerPasses(
  lines: readonly string[],
  set: { readonly namespace: string; readonly name: string },
): PassLine[] {
  return lines.flatMap(line => {
    const [time = '', , , message, fields = ''] = line.split('\t')
    if (message !== 'Reconciling Backuppodset' || !fields.includes(`"${set.namespace}/${set.name}"`))
      return []
    return [{ at: Date.parse(time), reconcileId: '' }]
  })
}
