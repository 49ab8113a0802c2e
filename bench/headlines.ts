/** The single figures that README.md and docs/is-it-for-me.md show, by bench and case. */

export interface Headline {
  /** The first cell of the row. */
  readonly what: string
  readonly bench: string
  readonly case: string
  /** The comparison in words; `besideCase` is the case of the same run that it names, if there is one. */
  readonly beside: string
  readonly besideCase?: string
}

/** The figures of README.md, also those in which a Deployment or a set without checkpoints is better. */
export const headlines: readonly Headline[] = [
  {
    what: 'outage at the Service after `kill -9`, hot backup `Frozen`',
    bench: 'failover',
    case: 'frozen service',
    beside: 'Deployment, container restarted in place',
    besideCase: 'Deployment, restart in place: service',
  },
  {
    what: 'a client that keeps its connection, from its reset to its next answer, `Frozen` with a grant',
    bench: 'failover',
    case: 'granted kept connection, reset to served',
    beside: 'without a grant',
    besideCase: 'frozen kept connection, reset to served',
  },
  {
    what: 'outage at the Service, hot backup `Staged` with a grant',
    bench: 'failover',
    case: 'staged service',
    beside: 'Deployment, pod deleted and replaced',
    besideCase: 'Deployment, pod deleted: service',
  },
  {
    what: 'the same, no backup left: a new pod, with its memory',
    bench: 'failover-basic',
    case: 'fresh service',
    beside: 'Deployment, pod deleted and replaced',
    besideCase: 'Deployment, pod deleted: service',
  },
  {
    what: 'age of the restored memory, saved every second',
    bench: 'failover',
    case: 'frozen state age at the kill',
    beside: 'Deployment: the memory is lost',
  },
  {
    what: 'the same, redis with 500 busy connections',
    bench: 'load-kills',
    case: '500 connections, 2000/s: state age at the kill',
    beside: 'one connection',
    besideCase: '1 connection, 2000/s: state age at the kill',
  },
  {
    what: 'a client waits for one checkpoint, redis of 1 GB with 1,000 writes/s',
    bench: 'checkpoint',
    case: 'redis 1GB freeze, seen by a client',
    beside: "the kubelet's checkpoint API",
    besideCase: 'redis 1GB by the kubelet: freeze, seen by a client',
  },
  {
    what: 'requests of a saturated redis of 100 MB, a checkpoint every 10 s',
    bench: 'cost',
    case: 'throughput saturated interval 10',
    beside: 'no checkpoints',
    besideCase: 'throughput saturated without checkpoints',
  },
  {
    what: 'one pod of each kind, the primary is lost: until all are in place again',
    bench: 'paper',
    case: 'E4 total',
    beside: 'Deployment of the same pods',
    besideCase: 'E4 Deployment',
  },
  {
    what: 'a cold backup is woken, until it is Ready',
    bench: 'wake',
    case: 'message to Ready',
    beside: "a gate like the paper's, which ends",
    besideCase: 'message to Ready, a gate that ends',
  },
]

const ofCheckpoint = (size: string, name: string): Headline => ({
  what: `a client waits for one checkpoint: ${size}`,
  bench: 'checkpoint',
  case: `${name} freeze, seen by a client`,
  beside: "the kubelet's checkpoint API",
  besideCase: `${name} by the kubelet: freeze, seen by a client`,
})

/** The figures of docs/is-it-for-me.md: what memory costs. */
export const costs: readonly Headline[] = [
  ofCheckpoint('Node.js', 'node'),
  ofCheckpoint('redis of 3 MB', 'redis 3MB'),
  ofCheckpoint('redis of 100 MB', 'redis 100MB'),
  ofCheckpoint('redis of 1 GB with 1,000 writes/s', 'redis 1GB'),
  {
    what: 'requests of a saturated redis of 100 MB, a checkpoint every 10 s',
    bench: 'cost',
    case: 'throughput saturated interval 10',
    beside: 'no checkpoints',
    besideCase: 'throughput saturated without checkpoints',
  },
  {
    what: 'the same, a checkpoint every second',
    bench: 'cost',
    case: 'throughput saturated interval 1',
    beside: 'no checkpoints',
    besideCase: 'throughput saturated without checkpoints',
  },
  {
    what: 'the same redis at half of that load, a checkpoint every second',
    bench: 'cost',
    case: 'throughput half load interval 1',
    beside: 'no checkpoints',
    besideCase: 'throughput half load without checkpoints',
  },
  {
    what: 'memory of an agent without primaries',
    bench: 'rest',
    case: 'agent memory, node of the primaries, no primaries',
    beside: 'without `checkpoint` there is no agent',
  },
]

/** The figures of docs/is-it-for-me.md: what a failure costs, here and without. */
export const failures: readonly Headline[] = [
  {
    what: 'outage at the Service after `kill -9`, hot backup `Frozen`',
    bench: 'failover',
    case: 'frozen service',
    beside: 'Deployment, container restarted in place, memory lost',
    besideCase: 'Deployment, restart in place: service',
  },
  {
    what: 'the same without any backup: a new pod, with its memory',
    bench: 'failover-basic',
    case: 'fresh service',
    beside: 'Deployment, pod deleted and replaced, memory lost',
    besideCase: 'Deployment, pod deleted: service',
  },
  {
    what: 'age of the restored memory, saved every second',
    bench: 'failover',
    case: 'frozen state age at the kill',
    beside: 'Deployment: the memory is lost',
  },
  {
    what: 'outage at the Service when a node is cut off, `nodeTimeout` 3s',
    bench: 'node-cut',
    case: '3s: service',
    beside: 'Deployment, memory lost',
    besideCase: 'Deployment: service',
  },
  {
    what: 'the same',
    bench: 'node-cut',
    case: '3s: service',
    beside: 'Deployment with `tolerationSeconds: 0`, memory lost',
    besideCase: 'Deployment, tolerationSeconds 0: service',
  },
]
