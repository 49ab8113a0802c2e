import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { printable } from '../terminal.ts'
import { answerText } from './answer.ts'

const hostile = 'a\u001b[2J\u202eb\u009b31m'
const data = { name: 'web', message: hostile, lines: 'one\ntwo', count: 2, items: [{ ready: 'yes' }] }

describe('D19.output: what programs read', () => {
  test.each(['json', 'yaml'] as const)('%s has version and kind, and survives the terminal', output => {
    // The terminal escapes all that controls it, in pipes as well.
    const text = printable(answerText(output, 'Drill', data, () => 'never'))
    for (const character of ['\u001b', '\u202e', '\u009b']) expect(text).not.toContain(character)
    expect(parse(text)).toEqual({ apiVersion: 'cli.backup.example.com/v1alpha1', kind: 'Drill', ...data })
  })

  test('documents that follow each other in YAML are separate', () => {
    const one = (name: string) => answerText('yaml', 'SetStatus', { name }, () => '')
    const all = parseAllDocuments(`${one('a')}\n${one('b')}\n`)
    expect(all.map(each => each.toJS().name)).toEqual(['a', 'b'])
  })

  test('text stays text', () => {
    for (const output of ['text', 'wide'] as const)
      expect(answerText(output, 'Drill', data, () => 'slot 0')).toBe('slot 0')
  })
})
