/** The pages and the script fit together. This test types nothing. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { planOf } from './plan.ts'
import { pageOf } from './report.ts'
import { readResults } from './results.ts'
import { substitutions } from './substitutions.ts'
import { type User, users } from './users.ts'

const root = new URL('../', import.meta.url)
const read = (page: string) => readFile(new URL(page, root), 'utf8')

test('every user finds every block in the pages, and no placeholder is left', async () => {
  const plan = await planOf({ users, substitutions, read })
  for (const { user, commands } of plan) {
    expect(new Set(commands.map(({ step }) => step))).toEqual(new Set(user.steps.map(({ does }) => does)))
    const milestones = commands.map(({ reaches }) => reaches)
    for (const { milestone } of user.targets) expect(milestones).toContain(milestone)
  }
})

test('a heading, a marker or a value that changes in a page fails', async () => {
  const changed = (from: string, to: string) =>
    planOf({ users, substitutions, read: async page => (await read(page)).replaceAll(from, to) })
  await expect(changed('## Lose the server', '## Lose it')).rejects.toThrow(
    'docs/game-server.md:1: no sh block',
  )
  await expect(changed('<!-- first-day: helm-install -->', '')).rejects.toThrow(/^docs\/install\.md:\d+: /)
  await expect(changed('drill sessions', 'drill SET')).rejects.toThrow(/^docs\/cli\.md:\d+: SET stands for/)
  await expect(changed('ssh root@$node', 'ssh $node')).rejects.toThrow('no page has ssh root@$node any more')
})

test('a user types whole blocks, with what the user puts in', async () => {
  const user: User = {
    ...{ name: 'a', is: 'b', cluster: 'none', has: [], targets: [] },
    steps: [{ does: 'all', link: { page: 'p.md', heading: 'H' }, reaches: 'end' }],
  }
  const [planned] = await planOf({
    users: [user],
    substitutions: [{ on: 'NODE', by: 'n1', because: 'it is its name' }],
    read: async () => '# H\n```sh\none\ndrain NODE  # now\n```\n',
  })
  expect(planned?.commands).toEqual([
    { step: 'all', at: 'p.md:3', written: 'one', typed: 'one', expected: undefined, reaches: undefined },
    {
      step: 'all',
      at: 'p.md:4',
      written: 'drain NODE',
      typed: 'drain n1',
      expected: undefined,
      reaches: 'end',
    },
  ])
})

test('docs/first-day.md has the last results', async () => {
  expect(await read('docs/first-day.md')).toBe(pageOf(await readResults(), substitutions))
})
