import { execFileSync, spawnSync } from 'node:child_process'
import { expect } from 'vitest'
import { type Started, start } from '../../../init-waker/testing/process.ts'
import { eventually } from '../../../test/support/eventually.ts'

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
  /** Of IPv6. */
  readonly address6: string
  /** Starts a program there; it ends with the place. */
  start(args: readonly string[]): Promise<Started>
  /** Starts a server that answers with this word and the client's address, over TCP and UDP. */
  serve(word: string, port?: number): Promise<Started>
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
  /** Returns the answer that the client gets at an address, that of the pod by default, or the error. */
  ask(protocol: 'tcp' | 'udp', port?: number, address?: string): string
  /** Returns the names of the interfaces on the bridge: that of a place exists as long as its namespace. */
  ports(): readonly string[]
}

export async function createNetwork(app: string): Promise<Network> {
  const places: Place[] = []
  const place = async (host: number) => {
    const made = await createPlace(app, host)
    places.push(made)
    return made
  }
  const dispose = async () => {
    await Promise.all(places.map(one => one[Symbol.asyncDispose]()))
  }
  try {
    const [client, pod, heir] = [await place(1), await place(2), await place(3)]
    const ip = (at: Place, ...args: string[]) => at.run('ip', args)
    ip(client, 'link', 'add', 'br0', 'type', 'bridge')
    const connect = (at: Place, device: string) => {
      ip(at, 'addr', 'add', `${at.address}/24`, 'dev', device)
      // The kernel would look for a second whether another machine has this address.
      ip(at, 'addr', 'add', `${at.address6}/64`, 'dev', device, 'nodad')
      ip(at, 'link', 'set', device, 'up')
    }
    connect(client, 'br0')
    for (const [name, at] of [
      ['pod', pod],
      ['heir', heir],
    ] as const) {
      ip(client, ...`link add ${name} type veth peer name eth0 netns ${at.sandbox.pid}`.split(' '))
      ip(client, 'link', 'set', name, 'master', 'br0', 'up')
      connect(at, 'eth0')
      ip(at, 'link', 'set', 'lo', 'up')
    }
    const ports = () =>
      (JSON.parse(client.run('ip', ['--json', 'link', 'show'])) as { ifname: string }[]).map(
        ({ ifname }) => ifname,
      )
    const ask: Network['ask'] = (protocol, port = 8080, address = pod.address) =>
      client.run(app, ['ask', protocol, address, String(port)]).trim()
    return { client, pod, heir, ask, ports, [Symbol.asyncDispose]: dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

async function createPlace(app: string, host: number): Promise<Place> {
  const sandbox = await start('unshare', ['--net', app, 'pause'])
  const others: Started[] = []
  const enter = ['--net', '--target', String(sandbox.pid)]
  // When unshare has become the app, its namespaces exist.
  while (execFileSync('readlink', [`/proc/${sandbox.pid}/exe`], { encoding: 'utf8' }).trim() !== app)
    await new Promise(resolve => setTimeout(resolve, 2))
  const end = async () => {
    await Promise.all([sandbox, ...others].map(one => one[Symbol.asyncDispose]()))
  }
  const startThere = async (args: readonly string[]) => {
    const [program = app, ...rest] = args
    const started = await start('nsenter', [...enter, program, ...rest])
    others.push(started)
    return started
  }
  return {
    sandbox,
    address: `10.0.0.${host}`,
    address6: `fd00::${host}`,
    start: startThere,
    async serve(word, port = 8080) {
      const server = await startThere([app, 'serve', word, String(port)])
      await eventually(() => expect(server.stdout()).toBe('ready\n'))
      return server
    },
    run: (program, args, input = '') =>
      execFileSync('nsenter', [...enter, program, ...args], { encoding: 'utf8', input }),
    end,
    [Symbol.asyncDispose]: end,
  }
}
