import { expect, test } from 'vitest'
import { normaliseReference, tagOf } from './reference.ts'

test.each([
  ['nginx:1.14.2', 'docker.io/library/nginx:1.14.2'],
  ['nginx', 'docker.io/library/nginx:latest'],
  ['team/app:0.1.0', 'docker.io/team/app:0.1.0'],
  ['understudy.invalid/waker:0.1.0', 'understudy.invalid/waker:0.1.0'],
  ['localhost/x:1', 'localhost/x:1'],
  ['registry.example:5000/a/b/c', 'registry.example:5000/a/b/c:latest'],
])('%s is %s', (given, wanted) => {
  expect(normaliseReference(given)).toBe(wanted)
})

test.each(['Nginx:1', 'nginx:', 'a/b@sha256:00', '', 'nginx:la test'])('%j is refused', given => {
  expect(() => normaliseReference(given)).toThrow(/not an image reference/)
})

test('the tag is what follows the last colon, not a port', () => {
  expect(tagOf('registry.example:5000/a:1.2')).toBe('1.2')
})
