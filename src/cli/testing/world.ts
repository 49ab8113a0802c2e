import type { Clock } from '../../kube/clock.ts'
import { type FollowedWorld, untilIn, type World } from '../world.ts'

export interface FakeWorld extends FollowedWorld {
  /** Replaces a part of the world, and resolves when a command has reacted. */
  change(part: Partial<World>): Promise<void>
}

/** A world that changes only when a test says so. */
export function fakeWorld(clock: Clock, first: World, signal: AbortSignal): FakeWorld {
  let now = first
  const listeners = new Set<() => void>()
  const settled = () => new Promise<void>(resolve => setImmediate(resolve))
  return {
    get now() {
      return now
    },
    async change(part) {
      // A command that has just begun does not listen yet.
      await settled()
      now = { ...now, ...part }
      for (const listener of [...listeners]) listener()
      await settled()
    },
    until: untilIn(() => now, listeners, clock, signal),
    onChange: () => Promise.reject(new Error('a command that waits does not use it')),
  }
}
