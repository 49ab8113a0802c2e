import { describe, expect, test } from 'vitest'
import { commandsOf } from './commands.ts'
import { missing } from './expected.ts'
import { blocksOf, findBlock, type Link } from './page.ts'
import { substituted } from './placeholders.ts'

const fence = '```'
const page = (...lines: readonly string[]) => lines.join('\n')
const sh = (...lines: readonly string[]) => page(`${fence}sh`, ...lines, fence)
const only = (...lines: readonly string[]) =>
  findBlock({ page: 'p.md', heading: 'H' }, blocksOf('p.md', page('# H', sh(...lines))))

describe('blocks of a page', () => {
  const text = page(
    '# One',
    sh('a'),
    '## Two `x`',
    '<!-- first-day: second -->',
    sh('b'),
    '',
    sh('c'),
    '## Three',
    sh('d'),
    'words',
    sh('e'),
    `${fence}yaml`,
    'a: b',
    fence,
  )
  const find = (link: Link) => findBlock(link, blocksOf('p.md', text))

  test('are found by heading or marker, with their lines', () => {
    expect(find({ page: 'p.md', heading: 'One' })).toMatchObject({ line: 2, text: 'a' })
    expect(find({ page: 'p.md', marker: 'second' })).toMatchObject({ line: 7, text: 'b' })
    expect(find({ page: 'p.md', heading: 'Two `x`' })).toMatchObject({ text: 'c' })
  })

  test('have to exist, once', () => {
    expect(() => find({ page: 'p.md', marker: 'gone' })).toThrow(
      'p.md:1: no sh block below <!-- first-day: gone -->',
    )
    expect(() => find({ page: 'p.md', heading: 'Four' })).toThrow(
      'p.md:1: no sh block below the heading "Four"',
    )
    expect(() => find({ page: 'p.md', heading: 'Three' })).toThrow('p.md:19: a second sh block below')
  })
})

describe('commands of a block', () => {
  test('are what a shell takes as one, without comments', () => {
    const typed = commandsOf(
      only(
        '# first',
        'a b   # why',
        '',
        'helm x \\',
        '  --y',
        'for i in 1 2; do',
        '  echo $i  # each',
        'done',
        "cat <<'EOF'",
        'x',
        'EOF',
        'sed s#a#b#',
      ),
    )
    expect(typed.map(({ line, text }) => [line, text])).toEqual([
      [4, 'a b'],
      [6, 'helm x \\\n  --y'],
      [8, 'for i in 1 2; do\n  echo $i\ndone'],
      [11, "cat <<'EOF'\nx\nEOF"],
      [14, 'sed s#a#b#'],
    ])
  })

  test('do not end with the block', () => {
    expect(() => commandsOf(only('a', 'for i in 1; do'))).toThrow('p.md:4: this is no complete command')
    expect(() => commandsOf(only('kubectl get pod <name>'))).toThrow('p.md:3: this is no complete command')
  })
})

describe('placeholders', () => {
  const type = (text: string, on = '', by = '') => {
    const [command] = commandsOf(only(text))
    if (command === undefined) throw new Error('no command')
    return substituted(command, on === '' ? [] : [{ on, by, because: '' }])
  }

  test.each([
    'kubectl label namespace YOUR-NAMESPACE a=b',
    'kubectl drain NODE',
    'ctr import FILE',
    'get /pods/POD:8080/',
    'helm --set images.registry=registry.example/understudy',
    'BASE=node:24@sha256:...',
    'kubectl status -n NS SET',
  ])('%s has one without a substitution', text => {
    expect(() => type(text)).toThrow(/^p\.md:3: \S+ stands for something/)
  })

  test.each([
    'export KUBECONFIG=x; echo $KUBECONFIG $HOME',
    "kubectl get x -o custom-columns=NODE:.metadata.name -o jsonpath='{.status}'",
    'exec 3<>/dev/udp/$node/$port',
  ])('%s has none', text => {
    expect(type(text)).toBe(text)
  })

  test('are replaced', () => {
    expect(type('kubectl drain NODE --x', 'NODE', 'n1')).toBe('kubectl drain n1 --x')
  })
})

describe('shown output', () => {
  const expectedOf = (...lines: readonly string[]) => commandsOf(only(...lines))[0]?.expected

  test('in a comment is a part of what is printed', () => {
    const expected = expectedOf('get /count  # {"seq":1,"tick":...,"x":0}, in another pod')
    expect(missing(expected, 'note\n{"seq": 1, "tick": 17, "x": 0}\n')).toEqual([])
    expect(missing(expected, '{"seq":2,"tick":17,"x":0}')).toEqual(['{"seq":1,"tick":...,"x":0}'])
    expect(missing(expectedOf('a  # words'), '')).toEqual([])
  })

  test('in a block below is compared by first words, in order', () => {
    const text = page(
      '# H',
      sh('a', 'get pods'),
      '',
      `${fence}console`,
      'NAME   READY',
      'web-07df307c3764   1/1',
      fence,
    )
    const [block] = blocksOf('p.md', text)
    if (block === undefined) throw new Error('no block')
    const [first, last] = commandsOf(block)
    expect(first?.expected).toBeUndefined()
    expect(missing(last?.expected, 'NAME  AGE\nother-1  2s\nweb-aaaaaaaaaaaa  0/1\n')).toEqual([])
    expect(missing(last?.expected, 'web-aaaaaaaaaaaa  0/1\nNAME\n')).toEqual(['web-07df307c3764   1/1'])
  })
})
