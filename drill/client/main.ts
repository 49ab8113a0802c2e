/**
 * The clients of one place. They run in the network namespace of a node and obey lines of JSON on standard input:
 * each line is the whole list of targets from then on. Standard output has a line for each call that is over, and once a
 * second the longest delay of a timer. They end with standard input, so that they never outlive the drill.
 */
import { setPriority } from 'node:os'
import { createInterface } from 'node:readline'
import { type Call, type Entry, now } from '../history.ts'
import { addFresh, createKept, type Kept } from './http.ts'
import type { Target } from './target.ts'

// Clients have machines of their own, in truth: what they wait for here must be the cluster.
setPriority(-15)

const places = process.argv[2] ?? 'x'
const write = (entry: Entry) => process.stdout.write(`${JSON.stringify(entry)}\n`)

interface Asking {
  readonly end: () => void
}

const open = new Set<Omit<Call, 'end'>>()
const asking = new Map<string, Asking>()
let words = 0

function called(target: Target, add: (word: string) => Promise<Pick<Call, 'answer' | 'error'>>): void {
  words += 1
  const word = `${places}${target.slot}${target.client[0]}-${words}`
  const call = { type: 'call', client: target.client, slot: target.slot, word, start: now() } as const
  open.add(call)
  add(word).then(result => {
    open.delete(call)
    write({ ...call, end: now(), ...result })
  })
}

function ask(target: Target): Asking {
  const kept: Kept | undefined = target.client === 'kept' ? createKept(target) : undefined
  const timer = setInterval(() => {
    if (kept === undefined) called(target, word => addFresh(target, word))
    // One request at a time, as a client with one connection has it.
    else if (kept.isFree()) called(target, kept.add)
  }, target.everyMs)
  return {
    end: () => {
      clearInterval(timer)
      kept?.end()
    },
  }
}

function obey(targets: readonly Target[]): void {
  const wanted = new Map(targets.map(target => [`${target.client} ${target.slot} ${target.host}`, target]))
  for (const [key, one] of asking)
    if (!wanted.has(key)) {
      one.end()
      asking.delete(key)
    }
  for (const [key, target] of wanted) if (!asking.has(key)) asking.set(key, ask(target))
}

/** Calls that are not over yet may have been executed, so the history has them without an answer. */
function finish(): void {
  for (const call of open) write({ ...call, end: now(), error: 'unfinished' })
  process.stdout.write('', () => process.exit(0))
}

const tickMs = 50
let due = now() + tickMs
let worst = 0
setInterval(() => {
  worst = Math.max(worst, now() - due)
  due = now() + tickMs
}, tickMs)
setInterval(() => {
  write({ type: 'late', at: now(), ms: Math.max(0, worst) })
  worst = 0
}, 1_000)

// Ctrl-C reaches the whole group, so ignore it: the parent ends this process after its own clean-up.
process.on('SIGINT', () => {})
createInterface({ input: process.stdin })
  .on('line', line => obey(JSON.parse(line) as readonly Target[]))
  .on('close', finish)
