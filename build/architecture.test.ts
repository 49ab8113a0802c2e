import { expect, test } from 'vitest'
import { toolchainFor } from './architecture.ts'

test('a machine compiles for itself with its own compiler, and for another with the cross compiler of Debian', () => {
  expect(toolchainFor('arm64', 'arm64').compiler).toBe('gcc')
  expect(toolchainFor('arm64', 'amd64')).toEqual({
    compiler: 'aarch64-linux-gnu-gcc',
    strip: 'aarch64-linux-gnu-strip',
    debianPackage: 'gcc-aarch64-linux-gnu',
  })
  // Debian's names of packages have no underscore.
  expect(toolchainFor('amd64', 'arm64')).toMatchObject({
    compiler: 'x86_64-linux-gnu-gcc',
    debianPackage: 'gcc-x86-64-linux-gnu',
  })
})
