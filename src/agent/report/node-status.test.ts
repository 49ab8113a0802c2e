import { expect, it } from 'vitest'
import type { ReportContent } from './content.ts'
import { createNodeStatus } from './node-status.ts'

it('a report names a sentinel only beside its own statements', () => {
  const written: ReportContent[] = []
  const about = { version: '1', address: 'a:1', fingerprint: 'f', signs: true }
  const machine = { kernel: '6', criu: '4', architecture: 'x86_64' }
  const status = createNodeStatus(about, machine, { update: content => void written.push(content) })
  const said = () => {
    status.publish()
    const last = written.at(-1)
    return last !== undefined && 'heartbeats' in last ? (last.heartbeats?.run ?? 'none') : 'as before'
  }
  const listens = (run: string) => {
    status.heartbeats = { port: 9443, run, key: 'ab' }
  }
  const slotsOf = (run: string | undefined) => {
    status.slots = []
    status.run = run
  }
  expect(said()).toBe('as before')
  // The slots are still those of the earlier agent, perhaps from before a reboot.
  listens('first')
  expect(said()).toBe('as before')
  slotsOf(undefined)
  expect(said()).toBe('as before')
  slotsOf('first')
  expect(said()).toBe('first')
  listens('second')
  expect(said()).toBe('as before')
  slotsOf('second')
  expect(said()).toBe('second')
  status.heartbeats = null
  expect(said()).toBe('as before')
  slotsOf(undefined)
  expect(said()).toBe('none')
})
