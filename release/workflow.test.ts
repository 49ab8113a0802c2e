import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

interface Workflow {
  readonly jobs: {
    readonly release: { readonly steps: readonly { readonly uses?: string; readonly run?: string }[] }
  }
}

const path = new URL('../.github/workflows/release.yml', import.meta.url)

test('the workflow runs the command of this repository, and every action is named by its commit', async () => {
  const workflow: Workflow = parse(await readFile(path, 'utf8'))
  const { steps } = workflow.jobs.release
  const commands = steps.flatMap(({ run = '' }) => [...run.matchAll(/npm run --silent (release -- \w*)/g)])
  expect(commands.map(([, command]) => command)).toEqual(['release -- ', 'release -- push'])
  for (const { uses } of steps) expect(uses ?? '@'.padEnd(41, '0')).toMatch(/@[0-9a-f]{40}$/)
})

test('the registry is a parameter: the workflow names no host', async () => {
  const text = await readFile(path, 'utf8')
  const hosts = text.match(/\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|io|net|dev|example)\b/g) ?? []
  expect(hosts).toEqual(['registry.example'])
})
