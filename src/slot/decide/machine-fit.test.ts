import { describe, expect, it } from 'vitest'
import { type Machine, misfit } from './machine-fit.ts'

const machine: Machine = {
  architecture: 'x86_64',
  kernel: '6.12.9-amd64',
  criu: '4.2.1',
  cpuFeatures: ['avx2', 'sse2'],
}

describe('D6.placement: memory goes on only where it can', () => {
  it.each<[string, Partial<Machine>]>([
    ['the same', {}],
    ['more instructions', { cpuFeatures: ['avx512f', 'sse2', 'avx2'] }],
    ['a newer kernel', { kernel: '6.13.0' }],
    ['an older patch of the kernel', { kernel: '6.12.1-other' }],
    ['a newer CRIU', { criu: '5.0' }],
    ['an agent that does not tell its processors', { cpuFeatures: undefined }],
    ['versions that nobody can read', { kernel: 'custom', criu: '' }],
  ])('%s', (_, here) => {
    expect(misfit(machine, { ...machine, ...here })).toBeUndefined()
  })

  it.each<[Partial<Machine>, string, RegExp]>([
    [{ architecture: 'aarch64' }, 'ArchitectureDiffers', /from x86_64, but the node is aarch64/],
    [{ cpuFeatures: ['sse2'] }, 'CpuDiffers', /lack avx2; use nodes of one processor type/],
    [{ cpuFeatures: [] }, 'CpuDiffers', /lack avx2, sse2/],
    [{ kernel: '6.11.20' }, 'KernelOlder', /upgrade this node/],
    [{ kernel: '5.15.0' }, 'KernelOlder', /5\.15\.0/],
    [{ criu: '4.1' }, 'CriuOlder', /agents of one version/],
  ])('not at %j', (here, reason, message) => {
    const found = misfit(machine, { ...machine, ...here })
    expect(found?.reason).toBe(reason)
    expect(found?.message).toMatch(message)
  })
})
