/**
 * `node native/sentinel/testing/measure.ts [ROUNDS]`: measures the time until a redirect is in effect, and
 * the sentinel's resources.
 */
import { spawn } from 'node:child_process'
import { cpus } from 'node:os'
import { memoryOf } from '../../../init-waker/testing/process.ts'
import { buildProgram } from '../../build.ts'
import { buildApp } from './build.ts'
import { createNetwork } from './network.ts'
import { processOf, startSentinel } from './sentinel.ts'

const rounds = Number(process.argv[2] ?? 100)
const program = await buildProgram('sentinel')
const app = await buildApp()

/** Measures microseconds from the kill to the notice, for the redirect, and in total. */
async function measure(): Promise<{ noticed: number[]; grave: number[]; closed: number[]; bytes: number }> {
  await using sentinel = await startSentinel(program)
  await using network = await createNetwork(app)
  const client = await sentinel.connect()
  const sandbox = processOf(network.pod.sandbox.pid)
  const noticed: number[] = []
  const grave: number[] = []
  const closed: number[] = []
  for (let round = 0; round < rounds; round++) {
    const victim = await network.pod.start([app, 'pause'])
    const name = String(round)
    await client.ask('watch', { name, ...processOf(victim.pid) })
    await client.ask('grave', { name, netns: sandbox.pid, start: sandbox.start, heir: network.heir.address })
    const killed = BigInt(network.client.run(app, ['doom', String(victim.pid)]).trim())
    const { values } = await client.line(line => line.word === 'died')
    if (values['grave'] !== 'closed') throw new Error(`the grave is ${values['grave']}`)
    noticed.push(Number(BigInt(values['at_unix_ns'] ?? 0) - killed) / 1000)
    grave.push(Number(values['grave_us']))
    closed.push((noticed.at(-1) ?? 0) + (grave.at(-1) ?? 0))
    await client.ask('unwatch', { name })
  }
  return { noticed, grave, closed, bytes: memoryOf(sentinel.pid, 'Rss') }
}

function summary(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)
  return `p50 ${at(0.5)} p99 ${at(0.99)} max ${at(1)}`
}

async function report(title: string): Promise<void> {
  const { noticed, grave, closed, bytes } = await measure()
  console.log(
    `${title}: µs from kill to notice ${summary(noticed)}; grave ${summary(grave)}; kill to closed ${summary(closed)}; resident ${bytes / 1024} kB`,
  )
}

await report(`${rounds} deaths, machine as it is`)
const load = Array.from({ length: 2 * cpus().length }, () => spawn('sh', ['-c', 'while :; do :; done']))
try {
  await report(`${rounds} deaths, two busy loops a processor`)
} finally {
  for (const one of load) one.kill('SIGKILL')
}
