/** Architectures of images, by the names that Go, Debian and OCI use. */
export const architectures = ['amd64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

/** The GNU name of each: the prefix of a cross compiler's programs. */
const triples: Readonly<Record<Architecture, string>> = {
  amd64: 'x86_64-linux-gnu',
  arm64: 'aarch64-linux-gnu',
}

/** Returns this machine's architecture, for which images are built unless another is named. */
export function imageArchitecture(arch: string = process.arch): Architecture {
  switch (arch) {
    case 'x64':
      return 'amd64'
    case 'arm64':
      return 'arm64'
    default:
      throw new Error(`images can be built on x64 and arm64 machines, not on ${arch}`)
  }
}

/** The programs that compile and strip for an architecture, and the Debian package that has both. */
export interface Toolchain {
  readonly compiler: string
  readonly strip: string
  readonly debianPackage: string
}

/** Returns the compiler of this machine, or the cross compiler for another architecture. */
export function toolchainFor(
  architecture: Architecture = imageArchitecture(),
  own: Architecture = imageArchitecture(),
): Toolchain {
  if (architecture === own) return { compiler: 'gcc', strip: 'strip', debianPackage: 'gcc' }
  const triple = triples[architecture]
  return {
    compiler: `${triple}-gcc`,
    strip: `${triple}-strip`,
    debianPackage: `gcc-${triple.replace('_', '-')}`,
  }
}
