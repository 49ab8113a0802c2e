import { execFileSync, spawnSync } from 'node:child_process'
import { type Started, start } from '../../../init-waker/testing/process.ts'

/** The reason why networks are unavailable here, or undefined if they work. */
export const cannotNetwork: string | undefined =
  process.getuid?.() !== 0
    ? 'needs root for network namespaces'
    : spawnSync('unshare', ['--net', 'ip', 'link', 'set', 'lo', 'up']).status !== 0
      ? 'needs unshare --net and ip (apt-get install iproute2 util-linux)'
      : undefined

/** A network namespace of its own, alive as long as its processes. */
export interface Place extends AsyncDisposable {
  /** Its first process, which only waits: a pod's sandbox. */
  readonly sandbox: Started
  readonly address: string
  /** Starts a program there; it ends with the place. */
  start(args: readonly string[]): Promise<Started>
  /** Runs a program there and returns its output. */
  run(program: string, args: readonly string[], input?: string): string
  /** Ends every process there. Its interfaces disappear when the kernel frees the namespace. */
  end(): Promise<void>
}

/**
 * A pod that will die, its heir and a client, on one bridge. It has no names on the host, so none can remain.
 */
export interface Network extends AsyncDisposable {
  readonly client: Place
  readonly pod: Place
  readonly heir: Place
  /** Returns the names of the interfaces on the bridge: that of a place exists as long as its namespace. */
  ports(): readonly string[]
}

export async function createNetwork(app: string): Promise<Network> {
  const places: Place[] = []
  const place = async (address: string) => {
    const made = await createPlace(app, address)
    places.push(made)
    return made
  }
  const dispose = async () => {
    await Promise.all(places.map(one => one[Symbol.asyncDispose]()))
  }
  try {
    const [client, pod, heir] = [await place('10.0.0.1'), await place('10.0.0.2'), await place('10.0.0.3')]
    const ip = (at: Place, ...args: string[]) => at.run('ip', args)
    ip(client, 'link', 'add', 'br0', 'type', 'bridge')
    ip(client, 'addr', 'add', '10.0.0.1/24', 'dev', 'br0')
    ip(client, 'link', 'set', 'br0', 'up')
    for (const [name, at] of [
      ['pod', pod],
      ['heir', heir],
    ] as const) {
      ip(client, ...`link add ${name} type veth peer name eth0 netns ${at.sandbox.pid}`.split(' '))
      ip(client, 'link', 'set', name, 'master', 'br0', 'up')
      ip(at, 'addr', 'add', `${at.address}/24`, 'dev', 'eth0')
      ip(at, 'link', 'set', 'eth0', 'up')
      ip(at, 'link', 'set', 'lo', 'up')
    }
    const ports = () =>
      (JSON.parse(client.run('ip', ['--json', 'link', 'show'])) as { ifname: string }[]).map(
        ({ ifname }) => ifname,
      )
    return { client, pod, heir, ports, [Symbol.asyncDispose]: dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

async function createPlace(app: string, address: string): Promise<Place> {
  const sandbox = await start('unshare', ['--net', app, 'pause'])
  const others: Started[] = []
  const enter = ['--net', '--target', String(sandbox.pid)]
  // When unshare has become the app, its namespaces exist.
  while (execFileSync('readlink', [`/proc/${sandbox.pid}/exe`], { encoding: 'utf8' }).trim() !== app)
    await new Promise(resolve => setTimeout(resolve, 2))
  const end = async () => {
    await Promise.all([sandbox, ...others].map(one => one[Symbol.asyncDispose]()))
  }
  return {
    sandbox,
    address,
    async start(args) {
      const [program = app, ...rest] = args
      const started = await start('nsenter', [...enter, program, ...rest])
      others.push(started)
      return started
    },
    run: (program, args, input = '') =>
      execFileSync('nsenter', [...enter, program, ...args], { encoding: 'utf8', input }),
    end,
    [Symbol.asyncDispose]: end,
  }
}
