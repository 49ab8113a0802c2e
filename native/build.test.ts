import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { programNames } from './build.ts'

it('the Makefile, for people without Node, builds the same programs', async () => {
  const makefile = await readFile(new URL('Makefile', import.meta.url), 'utf8')
  expect(/^PROGRAMS = (.*)$/m.exec(makefile)?.[1]?.split(' ').sort()).toEqual([...programNames].sort())
})
