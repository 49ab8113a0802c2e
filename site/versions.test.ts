import { expect, test } from 'vitest'
import { newestFirst, parseVersion, parseVersions, withVersion } from './versions.ts'

test('D23.versions: the newest release is first, its candidates follow it, and unreleased is last', () => {
  const versions = ['unreleased', 'v0.9.0', 'v1.0.0-rc.2', 'v1.0.0', 'v0.10.0', 'v1.0.0-rc.10']
  expect(versions.toSorted(newestFirst)).toEqual([
    'v1.0.0',
    'v1.0.0-rc.10',
    'v1.0.0-rc.2',
    'v0.10.0',
    'v0.9.0',
    'unreleased',
  ])
})

test('D23.versions: the root leads to the newest release, whichever version is added last', () => {
  expect(withVersion([], 'unreleased').newest).toBe('unreleased')
  expect(withVersion(['v1.1.0', 'unreleased'], 'v1.0.1')).toEqual({
    newest: 'v1.1.0',
    versions: ['v1.1.0', 'v1.0.1', 'unreleased'],
  })
  expect(withVersion(['v1.0.0'], 'v1.1.0-rc.1').newest).toBe('v1.0.0')
  expect(withVersion([], 'v1.0.0-rc.1').newest).toBe('v1.0.0-rc.1')
  expect(withVersion(['v1.0.0'], 'v1.0.0').versions).toEqual(['v1.0.0'])
})

test.each(['1.0.0', 'v1.0', '../v1.0.0', 'v1.0.0/..', 'latest', ''])(
  'D23.versions: %j is no version',
  text => {
    expect(() => parseVersion(text)).toThrow('is no version')
  },
)

test('D23.versions: a list with something else in it is refused', () => {
  expect(parseVersions('{"newest":"v1.0.0","versions":["v1.0.0"]}')).toEqual(['v1.0.0'])
  expect(() => parseVersions('{"versions":["../v1"]}')).toThrow('is no version')
  expect(() => parseVersions('[]')).toThrow('no list of versions')
})
