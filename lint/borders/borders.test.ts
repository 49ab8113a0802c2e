import { expect, it } from 'vitest'
import { diagramOf, withDiagram } from './diagram.ts'
import { importsOf, violationsOf } from './imports.ts'

const rooms = {
  'src/kube': { is: 'kit', uses: [] },
  'src/agent': { is: 'agent', uses: ['src/kube'] },
  src: { is: 'entry', uses: ['src/agent'] },
}
const violations = (path: string, source: string) => violationsOf(importsOf(path, source), rooms)

it.each([
  ['a static import', "import { a } from '../agent/a.ts'"],
  ['an import of types', "import type { A } from '../agent/a.ts'"],
  ['an export', "export { a } from '../agent/a.ts'"],
  ['a dynamic import', "export const a = await import('../agent/a.ts')"],
])('refuses %s that the table does not allow', (_, source) => {
  expect(violations('src/kube/b.ts', source)).toEqual([
    'src/kube/b.ts imports src/agent/a.ts: src/kube may not use src/agent',
  ])
})

it('allows what the table allows, the own room, packages and data', () => {
  const source = `import '../kube/b.ts'; import './c.ts'; import 'node:fs'; import data from '../../package.json'`
  expect(violations('src/agent/a.ts', source)).toEqual([])
  expect(violations('src/main.ts', "import './agent/a.ts'")).toEqual([])
})

it('refuses what lies outside all rooms, and what is for tests', () => {
  expect(violations('src/agent/a.ts', "import '../../crds/schema/a.ts'")).toHaveLength(1)
  expect(violations('src/agent/a.ts', "import './testing/fake.ts'")).toEqual([
    'src/agent/a.ts is no test and imports src/agent/testing/fake.ts',
  ])
  expect(violations('src/agent/a.test.ts', "import '../../test/a.ts'")).toEqual([])
})

it('refuses single files of a room that may be used otherwise', () => {
  const but = { ...rooms, 'src/agent': { ...rooms['src/agent'], not: ['src/kube/parse', 'src/kube/set.ts'] } }
  const from = (source: string) => violationsOf(importsOf('src/agent/a.ts', source), but)
  expect(from("import type { A } from '../kube/set.ts'")).toEqual([
    'src/agent/a.ts imports src/kube/set.ts: src/agent may not use that file of src/kube',
  ])
  expect(from("import '../kube/parse-memory.ts'")).toHaveLength(1)
  expect(from("import '../kube/sets.ts'")).toEqual([])
  expect(violationsOf(importsOf('src/agent/a.test.ts', "import '../kube/set.ts'"), but)).toEqual([])
})

it('draws the table between its marks, again and again the same', () => {
  expect(diagramOf(rooms)).toContain('  src_agent --> src_kube')
  const page =
    'a\n<!-- begin: drawn by `npm run generate` from lint/borders/rooms.ts -->\nold\n<!-- end -->\nb\n'
  const drawn = withDiagram(page, rooms)
  expect(drawn).toMatch(/^a\n<!-- begin[^\n]*\n```mermaid\n[\s\S]*\n```\n<!-- end -->\nb\n$/u)
  expect(withDiagram(drawn, rooms)).toBe(drawn)
  expect(() => withDiagram('nothing', rooms)).toThrow(/has no/u)
})
