/** The pages for operators name every reason and error, and the threat model names tests that exist. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { agentErrors } from '../../../src/api/agent-errors.ts'
import { migrationReasons } from '../../../src/api/migration-reasons.ts'
import { eventReasons, reasons } from '../../../src/api/reasons.ts'
import { hasTitle } from './titles.ts'

const root = new URL('../../..', import.meta.url).pathname
const page = (name: string) => readFileSync(join(root, 'docs', name), 'utf8')

describe('the page about operating', () => {
  const text = page('operate.md')

  test.each([
    ['conditions of sets', Object.values(reasons)],
    ['events', Object.values(eventReasons)],
    ['agents', Object.keys(agentErrors)],
  ])('has every reason of %s', (_, all) => {
    expect(all.filter(reason => !text.includes(`\`${reason}\``))).toEqual([])
  })
})

test('the page about Migrations has every reason of theirs', () => {
  const text = page('migration.md')
  expect(migrationReasons.filter(reason => !text.includes(`\`${reason}\``))).toEqual([])
})

describe('the threat model', () => {
  const text = page('threat-model.md')
  const claims = [...text.matchAll(/^\| (.+) \| (\S+\.test\.ts) `(.+)` \|$/gm)]

  test('has a test for each claim, and has claims', () => {
    // The earlier tables list actors and assets, not defended claims.
    const rows = text.slice(text.indexOf('| claim |')).match(/^\| (?!claim \|)/gm)
    expect(claims.length).toBe(rows?.length)
    expect(claims.length).toBeGreaterThan(25)
  })

  test.each(claims.map(([, claim = '', file = '', words = '']) => ({ claim, file, words })))(
    '$file $words',
    ({ file, words }) => {
      expect(hasTitle(join(root, file), words)).toBe(true)
    },
  )
})
