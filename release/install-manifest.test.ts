import { expect, test } from 'vitest'
import { imagesOf, installManifest, withRegistry } from './install-manifest.ts'
import { parseRegistry } from './registry.ts'

const digests = { operator: `sha256:${'1'.repeat(64)}`, waker: `sha256:${'2'.repeat(64)}` }
const rendered = `kind: Deployment
spec:
  - args: [a]
    image: understudy.invalid/operator:0.1.0
  - --waker-image=understudy.invalid/waker:0.1.0
---
kind: Service
`

test('every image is named by its digest in the registry', () => {
  const manifest = installManifest(rendered, '0.1.0', digests, 'registry.example/team')
  expect(imagesOf(manifest)).toEqual([
    `registry.example/team/operator@${digests.operator}`,
    `registry.example/team/waker@${digests.waker}`,
  ])
  expect(manifest).not.toContain('understudy.invalid')
  expect(manifest).toContain('kind: Service\n')
})

test('without a registry, the file becomes the same one when its user names it', () => {
  const manifest = installManifest(rendered, '0.1.0', digests)
  const bound = installManifest(rendered, '0.1.0', digests, 'registry.example/team')
  expect(`# Understudy 0.1.0\n${withRegistry(manifest, 'registry.example/team')}`).toBe(bound)
})

test.each([
  ['an unknown image', rendered.replace('operator:0', 'other:0')],
  ['another version', rendered.replace('operator:0.1.0', 'operator:0.2.0')],
  ['no version', rendered.replace('operator:0.1.0', 'operator')],
])('%s is refused', (_, changed) => {
  expect(() => installManifest(changed, '0.1.0', digests)).toThrow(/not an image of release 0\.1\.0/)
})

test.each(['registry.example/team', 'registry.example:5000', 'localhost/a/b', '127.0.0.1:5000/understudy'])(
  '%s is a registry',
  text => {
    expect(parseRegistry(`${text}/`)).toBe(text)
  },
)

test.each([
  '',
  'team',
  'https://registry.example',
  'registry.example/Team',
  'registry.example/a:1',
  'a.example/b@c',
])('%j is none, and the message says what is one', text => {
  expect(() => parseRegistry(text)).toThrow(/such as registry\.example\/team\/understudy/)
})

test('the host that stands for no registry is none', () => {
  expect(() => parseRegistry('understudy.invalid')).toThrow(/cannot exist/)
})
