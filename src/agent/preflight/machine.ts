/** Properties of this machine that programs find, and on which their memory depends. */
import { readFile } from 'node:fs/promises'
import { machine, release } from 'node:os'
import type { Machine } from '../../slot/decide/machine-fit.ts'

/**
 * Flags of x86 that are instructions or registers for which programs look. The other flags describe the kernel's own
 * use, errata or the hypervisor, and differ between machines on which the same programs run.
 */
const x86 =
  /^(fpu|tsc|cx8|cmov|clflush|mmx|mmxext|3dnow.*|fxsr(_opt)?|sse|sse2|pni|ssse3|sse4.*|syscall|rdtscp|lm|pclmulqdq|fma4?|cx16|movbe|popcnt|aes|x?save(opt|c|s)?|xgetbv1|osxsave|avx.*|f16c|rdrand|rdseed|lahf_lm|abm|misalignsse|xop|tbm|lwp|fsgsbase|bmi[12]|erms|fsrm|fzrm|fsrs|fsrc|rtm|hle|adx|clflushopt|clwb|clzero|sha_ni|sha512|sm3|sm4|pku|ospke|gfni|vaes|vpclmulqdq|rdpid|rdpru|movdir.*|serialize|amx_.*|cldemote|waitpkg|enqcmd|user_shstk|ptwrite|wbnoinvd|cmpccxadd|mcommit|monitorx|mwaitx)$/

/** Returns the features in /proc/cpuinfo that all processors have, sorted. */
export function cpuFeaturesOf(cpuinfo: string): string[] {
  const lists = [...cpuinfo.matchAll(/^(flags|Features)\s*:(.*)$/gm)].map(([, kind, flags = '']) => {
    const names = flags.trim().split(/\s+/)
    return new Set(kind === 'Features' ? names : names.filter(name => x86.test(name)))
  })
  const [first, ...others] = lists
  return [...(first ?? [])].filter(name => others.every(other => other.has(name))).sort()
}

export async function thisMachine(criu: string): Promise<Machine> {
  return {
    architecture: machine(),
    kernel: release(),
    criu,
    cpuFeatures: cpuFeaturesOf(await readFile('/proc/cpuinfo', 'utf8')),
  }
}
