import { describe, expect, it } from 'vitest'
import { labels } from './labels.ts'
import { kindLabelOf, kindLabels } from './pod-kind.ts'

const kindOf = (marks: Readonly<Record<string, string>>) => kindLabelOf({ metadata: { labels: marks } })
const ofSet = { [labels.set]: 'web' }
const ofMove = { [labels.set]: 'move_web' }

describe('the kind of a pod', () => {
  it.each([
    ['of a set, as this version writes it', { ...ofSet, ...kindLabels('hotbackup') }, 'hotbackup'],
    ['of a set, from the version before', { ...ofSet, type: 'hotbackup' }, 'hotbackup'],
    [
      'that the version before promoted',
      { ...ofSet, ...kindLabels('hotbackup'), type: 'primary' },
      'primary',
    ],
    ['that the version before retired', { ...ofSet, ...kindLabels('primary'), type: 'retired' }, 'retired'],
    [
      'that a user takes out of its set by `type`',
      { ...ofSet, ...kindLabels('primary'), type: 'debug' },
      'debug',
    ],
    [
      'whose `role` a user edits',
      { ...ofSet, ...kindLabels('hotbackup'), [labels.role]: 'primary' },
      'hotbackup',
    ],
    ['whose `type` a user removes', { ...ofSet, [labels.role]: 'primary' }, undefined],
    ['without a set', { type: 'coldbackup' }, 'coldbackup'],
    [
      'of another owner that uses `type` too',
      { ...ofMove, type: 'primary', [labels.role]: 'hotbackup' },
      'hotbackup',
    ],
    ['of another owner, before it has a role', { ...ofMove, type: 'primary' }, undefined],
  ])('of a pod %s', (_, marks, kind) => expect(kindOf(marks)).toBe(kind))

  it('is unknown for a pod without labels, and for no pod', () => {
    expect(kindLabelOf({ metadata: {} })).toBeUndefined()
    expect(kindLabelOf(undefined)).toBeUndefined()
  })
})
