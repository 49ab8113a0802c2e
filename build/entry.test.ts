import { expect, test } from 'vitest'
import { type Entry, orderEntries, textFile } from './entry.ts'

const paths = (...given: string[]): string[] =>
  orderEntries(given.map(path => textFile(path, ''))).map(e => e.path)

test('parents come first, siblings by name, whatever the order given', () => {
  const wanted = ['/a', '/a/b', '/a/c', '/a/c/d', '/a-b', '/b']
  expect(paths('/b', '/a/c/d', '/a-b', '/a/b')).toEqual(wanted)
  expect(paths('/a-b', '/a/b', '/a/c/d', '/b')).toEqual(wanted)
})

test('a missing parent is a directory of root, a given one is kept as it is', () => {
  const data: Entry = { type: 'directory', path: '/data', mode: 0o700, uid: 5, gid: 5 }
  expect(orderEntries([textFile('/data/x/y', ''), data]).slice(0, 2)).toEqual([
    data,
    { type: 'directory', path: '/data/x', mode: 0o755 },
  ])
})

test.each(['a', 'a/b', '/', '/a/', '/a//b', '/../a', '/a/../b'])('path %j is refused', path => {
  expect(() => orderEntries([textFile(path, '')])).toThrow(/not an absolute, normalised path/)
})

test('one path given twice is refused: which one won would depend on the order', () => {
  expect(() => orderEntries([textFile('/a', '1'), textFile('/a', '2')])).toThrow('two entries for /a')
})
