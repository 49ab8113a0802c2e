import { expect, it } from 'vitest'
import { broughtBackNote, parseBroughtBack } from './stage.ts'

it('which memory a pod has gone on with is read back from the message it was written into', () => {
  const memory = { generation: 29, takenAt: '2026-01-01T00:00:01.250Z' }
  expect(parseBroughtBack(`epoch 2: app is containerd://1${broughtBackNote(memory)}`)).toEqual(memory)
})

it.each([
  '',
  'epoch 2: app is containerd://1',
  'x; generation many of 2026-01-01',
  'x; generation 1 of noon',
])('a message without it says nothing: %j', message => expect(parseBroughtBack(message)).toBeUndefined())
