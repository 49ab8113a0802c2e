import { expect, it } from 'vitest'
import { castsOf, refusalOf } from './casts.ts'

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

it('names the place of a cast that it refuses', () => {
  expect(refusalOf({ path: 'src/d.test.ts', line: 3 })).toMatch(/^src\/d\.test\.ts:3: /u)
})
