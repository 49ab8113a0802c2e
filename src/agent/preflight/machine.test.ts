import { expect, it } from 'vitest'
import { cpuFeaturesOf, thisMachine } from './machine.ts'

it('instructions that every processor has, and nothing of the kernel or the hypervisor', () => {
  const cpuinfo = [
    'processor\t: 0',
    'flags\t\t: fpu sse2 avx2 avx512f pti ibrs hypervisor constant_tsc',
    'bugs\t\t: spectre_v1',
    'processor\t: 1',
    'flags\t\t: fpu sse2 avx2 pti',
  ].join('\n')
  expect(cpuFeaturesOf(cpuinfo)).toEqual(['avx2', 'fpu', 'sse2'])
})

it('of arm64 all that is told, for programs are told the same', () => {
  expect(cpuFeaturesOf('Features\t: fp asimd sve\n')).toEqual(['asimd', 'fp', 'sve'])
})

it('of this machine something', async () => {
  const found = await thisMachine('4.2')
  expect(found.cpuFeatures?.length).toBeGreaterThan(3)
})
