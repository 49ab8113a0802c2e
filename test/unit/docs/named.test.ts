/** The pages for operators name everything that can happen, and the threat model names tests that there are. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { agentErrors } from '../../../src/agent/errors.ts'
import { eventReasons, reasons } from '../../../src/api/reasons.ts'

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

describe('the threat model', () => {
  const text = page('threat-model.md')
  const claims = [...text.matchAll(/^\| (.+) \| (\S+\.test\.ts) `(.+)` \|$/gm)]

  test('has a test for each claim, and has claims', () => {
    // The tables before say who and what, not what is defended.
    const rows = text.slice(text.indexOf('| claim |')).match(/^\| (?!claim \|)/gm)
    expect(claims.length).toBe(rows?.length)
    expect(claims.length).toBeGreaterThan(25)
  })

  test.each(claims.map(([, claim = '', file = '', words = '']) => ({ claim, file, words })))(
    '$file $words',
    ({ file, words }) => {
      const path = join(root, file)
      expect(existsSync(path)).toBe(true)
      // In a title: the line of a test or of a group of tests, or the one after it; or the one after a table of cases.
      const titles = [
        ...readFileSync(path, 'utf8').matchAll(/\b(?:it|test|describe)\b[^\n]*\n?[^\n]*|^ *\]\)\(\n[^\n]*/gm),
      ]
      expect(titles.some(([title]) => title.includes(words))).toBe(true)
    },
  )
})
