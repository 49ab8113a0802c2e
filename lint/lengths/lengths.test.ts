import { expect, it } from 'vitest'
import { functionsOf } from './functions.ts'
import { tooLong } from './lengths.ts'

const lines = (count: number, line = '  a()') => Array.from({ length: count }, () => line).join('\n')
const functionWith = (count: number) => `function long() {\n${lines(count)}\n}\n`

it('a function may have 60 lines of its own', () => {
  expect(tooLong('src/a.ts', functionWith(58))).toEqual([])
  expect(tooLong('src/a.ts', `\n${functionWith(59)}`)).toEqual(['src/a.ts:2: long has 61 lines of its own'])
})

it('a longer function in it counts for itself, a shorter one for both', () => {
  const factory = (inner: string) => `const make = () => {\n${inner}\n  return act\n}\n`
  expect(functionsOf('a.ts', factory(`  const act = () => {\n${lines(10)}\n  }`))).toEqual([
    { name: 'make', line: 1, own: 3 },
    { name: 'act', line: 2, own: 12 },
  ])
  expect(functionsOf('a.ts', factory('  const act = () => {\n  a()\n  }'))).toEqual([
    { name: 'make', line: 1, own: 6 },
    { name: 'act', line: 2, own: 3 },
  ])
})

it.each([
  ['a method', `class A {\n  act() {\n${lines(70)}\n  }\n}\n`],
  ['a property', `const a = {\n  act: async () => {\n${lines(70)}\n  },\n}\n`],
  ['a method of an object', `const a = {\n  act() {\n${lines(70)}\n  },\n}\n`],
])('%s is a function, with its name', (_, source) => {
  expect(tooLong('src/a.ts', source)).toEqual(['src/a.ts:2: act has 72 lines of its own'])
})

it('a body that is data may be long, and functions in it may not', () => {
  const fields = lines(70, '  a: 1,')
  expect(tooLong('src/a.ts', `const schema = () => ({\n${fields}\n})\n`)).toEqual([])
  expect(tooLong('src/a.ts', `const schema = () => object({\n${fields}\n}, {})\n`)).toEqual([])
  expect(tooLong('src/a.ts', `function schema() {\n  return [\n${lines(70, '1,')}\n  ]\n}\n`)).toEqual([])
  expect(tooLong('src/a.ts', `const of = () => act(it, {\n${fields}\n})\n`)).toHaveLength(1)
  expect(tooLong('src/a.ts', `const of = () => ({\n  a: () => {\n${lines(70)}\n  },\n})\n`)).toEqual([
    'src/a.ts:2: a has 72 lines of its own',
  ])
})

it('tests may have long functions', () => {
  expect(tooLong('src/a.test.ts', `describe('a', () => {\n${lines(70)}\n})\n`)).toEqual([])
})

const reason = 'Long because it is a list.'

it.each([
  ['a comment above the imports', `// ${reason}\nimport a from 'a'\n`],
  ['a doc comment', `/**\n * A list.\n *\n * ${reason}\n */\nimport a from 'a'\n`],
  ['a comment below the imports', `import a from 'a'\n/** ${reason} */\n`],
])('a file with more than 300 lines gives its reason in its head: %s', (_, head) => {
  expect(tooLong('a.ts', `${head}${lines(310)}\n`)).toEqual([])
})

it.each([
  ['nothing', ''],
  ['no reason', '// Long because\n'],
  ['a reason in the middle of a line', '// It is long. Long because it is.\n'],
  ['a reason behind the head', `a()\n// ${reason}\n`],
  ['a string', `const a = '\\\n${reason}'\n`],
])('a file with more than 300 lines is refused: %s', (_, head) => {
  const source = `${head}${lines(310)}\n`
  const count = source.split('\n').length - 1
  expect(tooLong('a.ts', source)).toEqual([
    `a.ts has ${count} lines, and no line of its head begins with "Long because"`,
  ])
})

it('a C file gives its reason before its code', () => {
  const code = lines(310, 'int a;')
  expect(tooLong('a.c', `/*\n * A list.\n *\n * ${reason}\n */\n#include "a.h"\n${code}\n`)).toEqual([])
  expect(tooLong('a.c', `#include "a.h"\n\n/* ${reason} */\n${code}\n`)).toEqual([])
  expect(tooLong('a.c', `#include "a.h"\n${code}\n/* ${reason} */\n`)).toHaveLength(1)
  expect(tooLong('a.h', lines(300, 'int a;'))).toEqual([])
})
