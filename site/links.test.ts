import { describe, expect, test } from 'vitest'
import { anchorNames } from './anchors.ts'
import { deadLinks, linksIn } from './dead-links.ts'
import { addressOf, type LinkTargets, relativeAddress, repositoryAddress, resolveLink } from './links.ts'

const files = [
  'docs/try.md',
  'docs/page.png',
  'samples/paper.yaml',
  'samples',
  'README.md',
  'docs/adr/README.md',
]
const targets: LinkTargets = {
  pages: new Set(files.filter(file => file.endsWith('.md'))),
  exists: path => files.includes(path),
}

describe('D23.links: a link of a document', () => {
  test.each([
    ['docs/adr/README.md', '../try.md#see-it', '../try.html#see-it'],
    ['docs/try.md', '../README.md', '../index.html'],
    ['README.md', 'docs/adr/README.md', 'docs/adr/index.html'],
    ['docs/try.md', '#see-it', '#see-it'],
    ['docs/try.md', 'https://kubernetes.io/docs', 'https://kubernetes.io/docs'],
  ])('from %s to %s leads to %s', (source, href, expected) => {
    expect(resolveLink(source, href, targets)).toEqual({ type: 'href', href: expected })
  })

  test('to a source file is a plain path while no repository is configured', () => {
    const path = 'samples/paper.yaml'
    expect(resolveLink('docs/try.md', `../${path}`, targets)).toEqual({ type: 'path', path })
    expect(resolveLink('docs/try.md', '../samples/', targets)).toEqual({ type: 'path', path: 'samples' })
  })

  test('to a source file leads to the repository that is configured', () => {
    const inRepository = (path: string) => `https://forge.example/understudy/blob/v1.0.0/${path}`
    expect(resolveLink('docs/try.md', '../samples/paper.yaml', { ...targets, inRepository })).toEqual({
      type: 'href',
      href: 'https://forge.example/understudy/blob/v1.0.0/samples/paper.yaml',
    })
  })

  test('to an image takes the image along', () => {
    const link = resolveLink('docs/try.md', 'page.png', targets)
    expect(link).toEqual({ type: 'asset', href: 'page.png', path: 'docs/page.png' })
  })

  test.each(['gone.md', '../../other/README.md', '/docs/try.md', '../samples/gone.yaml'])(
    'to %s is dead',
    href => {
      expect(resolveLink('docs/try.md', href, targets).type).toBe('dead')
    },
  )
})

test('D23.links: a page that links to itself names its file', () => {
  expect(relativeAddress('docs/try.html', 'docs/try.html')).toBe('try.html')
  expect(addressOf('src/kube/README.md')).toBe('src/kube/index.html')
})

test('D23.links: the address of the repository is one for browsers', () => {
  const address = 'https://forge.example/understudy'
  expect(repositoryAddress(undefined)).toBeUndefined()
  expect(repositoryAddress(`git+${address}.git`)).toBe(address)
  expect(repositoryAddress({ url: `${address}/` })).toBe(address)
  expect(() => repositoryAddress({ url: 'git@forge.example:understudy' })).toThrow('begins with https://')
})

test('D23.links: anchors are those of forges', () => {
  const name = anchorNames()
  expect(['With Helm', 'The `-A` flag, and more', 'With Helm', 'Ältere_Namen'].map(name)).toEqual([
    'with-helm',
    'the--a-flag-and-more',
    'with-helm-1',
    'ältere_namen',
  ])
})

test('D23.links: files and headings that do not exist are found in the pages that were written', () => {
  const html =
    '<a href="b.html#two">x</a> <a href="b.html#three">x</a> <a href="c.html">x</a> <img src="d.png">'
  const pages = new Map([
    ['docs/a.html', linksIn(html)],
    ['docs/b.html', linksIn('<h2 id="two">Two</h2><a href="../index.html">x</a><a href="#two">x</a>')],
  ])
  expect(deadLinks(pages, new Set(['docs/a.html', 'docs/b.html', 'index.html']))).toEqual([
    'docs/a.html: b.html#three leads to no heading',
    'docs/a.html: c.html leads to no file',
    'docs/a.html: d.png leads to no file',
  ])
})
