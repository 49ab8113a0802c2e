import { expect, it } from 'vitest'
import { createVirtualTime } from './model/virtual-time.ts'

it('no time passes while a promise can go on, or something is put off to the next turn of the event loop', async () => {
  const time = createVirtualTime()
  const party = time.createParty('test')
  const clock = time.clockOf(party)
  const said: string[] = []
  const say = (what: string) => said.push(`${time.now()} ${what}`)
  const work = async (name: string) => {
    await clock.sleep(10)
    for (let turns = 0; turns < 3; turns += 1) {
      await new Promise<void>(resolve => setImmediate(resolve))
      for (let links = 0; links < 100; links += 1) await Promise.resolve()
    }
    say(`${name} is through`)
    await clock.sleep(5)
    say(`${name} has slept`)
  }
  void work('one')
  time.after(party, 11, () => say('eleven'))
  await time.runUntil(100)
  expect(said).toEqual(['10 one is through', '11 eleven', '15 one has slept'])
  expect(time.now()).toBe(100)
})

it('a thousand moments pass in their order, and what throws is told to who lets time pass', async () => {
  const time = createVirtualTime()
  const party = time.createParty('test')
  const said: number[] = []
  for (let at = 1_000; at > 0; at -= 1) time.after(party, at, () => said.push(at))
  await time.runUntil(1_000)
  expect(said).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 1))
  const real = globalThis.setImmediate
  time.after(party, 1, () => {
    throw new Error('broken')
  })
  await expect(time.runUntil(2_000)).rejects.toThrow('broken')
  expect(globalThis.setImmediate).toBe(real)
})
