import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { compileStatic } from './compile.ts'
import { elfNeeds } from './elf.ts'
import { run } from './run.ts'

test('the needs of a dynamic executable are those that its loader lists', async () => {
  const listed = (await run('ldd', [process.execPath]))
    .split('\n')
    .flatMap(line => /^\s*(\S+) => /.exec(line)?.[1] ?? [])
  const needs = elfNeeds(await readFile(process.execPath))
  expect(needs.interpreter).toMatch(/^\/lib.*\/ld-linux/)
  expect(needs.libraries).toContain('libc.so.6')
  expect(listed).toEqual(expect.arrayContaining(needs.libraries.filter(name => !name.startsWith('ld-linux'))))
})

test('a static executable needs nothing', async () => {
  const pause = await compileStatic(fileURLToPath(new URL('../images/pause/pause.c', import.meta.url)))
  expect(elfNeeds(await readFile(pause))).toEqual({ libraries: [] })
}, 300_000)

test.each([
  ['text', '#!/bin/sh\n'.repeat(10)],
  ['nothing', ''],
  ['a 32-bit header', `\x7fELF\x01\x01${'\0'.repeat(60)}`],
])('%s is refused', (_, content) => {
  expect(() => elfNeeds(Buffer.from(content, 'latin1'))).toThrow('not a 64-bit little-endian ELF file')
})
