/**
 * The architecture: the rooms of this repository, and which rooms each may import from. `npm run check` refuses every other
 * import, and draws the diagram of docs/architecture.md from this table.
 */

export interface Room {
  /** One line for the diagram. */
  readonly is: string
  /** Rooms that its production code may import from. */
  readonly uses: readonly string[]
  /** Files of those rooms that it may not import all the same; a path stands for every file that begins with it. */
  readonly not?: readonly string[]
}

export const rooms: Readonly<Record<string, Room>> = {
  'src/kube': { is: 'client kit: transport, caches, queues, election', uses: [] },
  'src/api': { is: 'kinds, names, rules and reasons that all parts agree on', uses: ['src/kube'] },
  'src/state-store': { is: 'states over HTTP: memory, Redis', uses: ['src/kube'] },
  'src/probe': { is: 'probes over HTTP, TCP and gRPC, as the kubelet runs them', uses: ['src/kube'] },
  'src/checkpoint': {
    is: 'generations: manifest, store, delta, CRIU images',
    uses: ['src/api', 'src/kube'],
    not: ['src/api/set-slot.ts'],
  },
  'src/succession': { is: 'rules of slots: copies, ages, matching, assignment', uses: ['src/api'] },
  'src/agent': {
    is: 'DaemonSet: dumps, replicates and restores memory on its node',
    uses: ['src/api', 'src/checkpoint', 'src/kube', 'src/probe', 'src/succession'],
    // Agents know slots, and no kind that owns them.
    not: ['src/api/backuppodset.ts', 'src/api/parse', 'src/api/schema/', 'src/api/set-slot.ts'],
  },
  'src/backuppodset': {
    is: 'controller of BackupPodSets: observe, decide, act, report',
    uses: ['src/api', 'src/checkpoint', 'src/kube', 'src/state-store', 'src/succession'],
  },
  'src/operator': {
    is: 'Deployment: election, caches, controllers',
    uses: ['src/api', 'src/backuppodset', 'src/kube', 'src/state-store'],
  },
  'src/terminal': { is: 'tables and progress for people', uses: [] },
  'src/cli': { is: 'kubectl understudy', uses: ['src/api', 'src/kube', 'src/terminal'] },
  src: { is: 'entry point', uses: ['src/agent', 'src/api', 'src/operator'] },
  build: { is: 'tools: compiler, cache, Debian packages, bundler', uses: [] },
  'native/common': { is: 'C: what all static programs share', uses: [] },
  'init-waker': { is: 'C: gate, first process of understudies', uses: ['build', 'native/common'] },
  native: {
    is: 'C: what agents run on their nodes, with CRIU',
    uses: ['build', 'init-waker', 'native/common'],
  },
  images: { is: 'recipes of images, OCI archives', uses: ['build', 'init-waker', 'native'] },
}
