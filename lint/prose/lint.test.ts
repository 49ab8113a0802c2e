import { expect, it } from 'vitest'
import { lintProse } from './lint.ts'

const found = async (path: string, source: string) =>
  (await lintProse(path, source)).findings.map(({ line, sentence }) => [line, sentence])

it('finds sentences in comments of TypeScript, each with its line', async () => {
  const source = `const url = 'http://nobody' // Runs.
/**
 * The agent dumps the pod. Whoever reads it
 * knows that.
 *
 * @param pod nobody's
 */
const a = /\\/\\/ nobody/u // What is kept here.
// Two lines of one sentence, so that nobody
// misses it.
`
  expect(await found('a.ts', source)).toEqual([
    [3, 'Whoever reads it knows that.'],
    [6, "pod nobody's"],
    [8, 'What is kept here.'],
    [9, 'Two lines of one sentence, so that nobody misses it.'],
  ])
})

it('finds them in comments of C, and not in its strings', async () => {
  expect(await found('a.c', 'char *a = "// nobody";\n/* The process stands still. */\nint b;\n')).toEqual([
    [2, 'The process stands still.'],
  ])
})

it('leaves code, and questions, of Markdown alone', async () => {
  const source = `# Who holds what

Who holds a slot? \`nobody\` does. The pod goes on.

\`\`\`
nobody
\`\`\`
`
  expect(await found('a.md', source)).toEqual([[3, 'The pod goes on.']])
})

it('says what cannot be parsed', async () => {
  await expect(lintProse('a.ts', 'const = 1')).rejects.toThrow(/^a\.ts: /u)
})
