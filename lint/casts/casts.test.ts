import { expect, it } from 'vitest'
import { castsOf, violationsOf } from './casts.ts'

const lines = (source: string) => castsOf('src/a.test.ts', source).map(({ line }) => line)

it('finds casts that accept any value, each with its line', () => {
  const source = `const a = { b: 1 } as unknown as Pod
const c = f({
  d: e as never,
  g: h as any,
})
const i = (j as Partial<Pod>) as Pod
`
  expect(lines(source)).toEqual([1, 3, 4, 6])
})

it('leaves casts alone that the type checker questions, and text', () => {
  const source = `// as unknown as Pod
const a = 'as unknown as Pod'
const b = JSON.parse(a) as Pod
const c: unknown = b as unknown
const d = ['e'] as const as readonly string[]
`
  expect(lines(source)).toEqual([])
})

it('allows them where the list says so, and refuses entries that are not needed any more', () => {
  const casts = [
    { path: 'src/a/b.test.ts', line: 1 },
    { path: 'src/c.test.ts', line: 2 },
    { path: 'src/d.test.ts', line: 3 },
  ]
  const [refused, ...others] = violationsOf(casts, ['src/a/', 'src/c.test.ts', 'src/e/'])
  expect(refused).toMatch(/^src\/d\.test\.ts:3: /u)
  expect(others).toEqual(['lint/casts/main.ts: src/e/ has no such cast any more: remove it from the list'])
})
