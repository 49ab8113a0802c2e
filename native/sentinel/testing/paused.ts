import { type Started, start, stateOf } from '../../../init-waker/testing/process.ts'
import type { Cgroup } from './cgroup.ts'

/** Starts the test program in a cgroup, where it waits for signals. */
export async function startIn(app: string, cgroup: Cgroup): Promise<Started> {
  const started = await start(app, ['pause'])
  cgroup.add(started.pid)
  return started
}

/** Returns T for a stopped process, and S for one that runs or sleeps. */
export const statesOf = (...all: readonly { readonly pid: number }[]) =>
  all.map(({ pid }) => (stateOf(pid) === 'R' ? 'S' : stateOf(pid)))
