import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createFakeClock } from './clock.ts'
import { createQueue } from './queue.ts'

test('whatever happens in whatever order: no key lost, none worked on twice, the right one first', async () => {
  type Model = { key: string; priority: number; readyAt: number; order: number }
  const key = fc.constantFrom('a', 'b', 'c', 'd', 'e')
  const step = fc.oneof(
    fc.record({
      do: fc.constant('add' as const),
      key,
      priority: fc.integer({ min: -1, max: 1 }),
      afterMs: fc.constantFrom(0, 0, 3, 10, 30),
    }),
    fc.record({ do: fc.constant('take' as const) }),
    fc.record({ do: fc.constant('done' as const), which: fc.nat(4) }),
    fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 5, 40) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
      const clock = createFakeClock()
      const queue = createQueue({ clock, name: 'test' })
      const pending = new Map<string, Model>()
      const working = new Set<string>()
      let order = 0
      const due = () =>
        [...pending.values()]
          .filter(entry => entry.readyAt <= clock.monotonic() && !working.has(entry.key))
          .sort((a, b) => b.priority - a.priority || a.order - b.order)
      /** Takes the next item of the queue and compares it with that of the model. */
      const take = async () => {
        const expected = due()[0]
        const stop = new AbortController()
        const taken = queue.take(stop.signal)
        stop.abort()
        const item = await taken
        expect(item).toEqual(expected && { key: expected.key, priority: expected.priority })
        if (item) {
          pending.delete(item.key)
          working.add(item.key)
        }
        return item
      }
      for (const step of steps) {
        switch (step.do) {
          case 'add': {
            queue.add(step.key, step)
            const now = clock.monotonic()
            const known = pending.get(step.key)
            const readyAt = now + step.afterMs
            if (!known) pending.set(step.key, { ...step, readyAt, order: order++ })
            else {
              known.priority = Math.max(known.priority, step.priority)
              // A delayed key takes its place in the line when it becomes ready.
              if (known.readyAt > now && readyAt < known.readyAt) {
                known.readyAt = readyAt
                if (step.afterMs === 0) known.order = order++
              }
            }
            break
          }
          case 'take':
            await take()
            break
          case 'done': {
            const done = [...working][step.which]
            if (done === undefined) break
            queue.done(done)
            working.delete(done)
            break
          }
          case 'advance': {
            const before = clock.monotonic()
            await clock.advance(step.ms)
            const became = [...pending.values()]
              .filter(entry => entry.readyAt > before && entry.readyAt <= clock.monotonic())
              .sort((a, b) => a.readyAt - b.readyAt || a.order - b.order)
            for (const entry of became) entry.order = order++
            break
          }
        }
        expect(queue.depth()).toBe(
          [...pending.values()].filter(entry => entry.readyAt <= clock.monotonic()).length,
        )
      }
      for (const done of working) queue.done(done)
      working.clear()
      await clock.advance(1000)
      const left = [...pending.values()]
        .filter(entry => entry.readyAt > clock.monotonic() - 1000)
        .sort((a, b) => a.readyAt - b.readyAt || a.order - b.order)
      for (const entry of left) entry.order = order++
      while (await take());
      expect(pending.size).toBe(0)
      expect(clock.sleepers()).toBe(0)
    }),
    { numRuns: 300 },
  )
})
