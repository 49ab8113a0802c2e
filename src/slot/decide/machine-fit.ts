/** Decides which node can continue with memory that another node has made. */

/** A machine as far as memory depends on it. */
export interface Machine {
  /** As `uname` names it. */
  readonly architecture: string
  /** Kernel release. */
  readonly kernel: string
  /** CRIU version. */
  readonly criu: string
  /** CPU features that programs may find and use; absent: not reported. */
  readonly cpuFeatures?: readonly string[] | undefined
}

export interface Misfit {
  readonly reason: 'ArchitectureDiffers' | 'CpuDiffers' | 'KernelOlder' | 'CriuOlder'
  readonly message: string
}

/**
 * Returns why memory of one machine cannot continue on another; undefined if no known fact prevents it. Programs check
 * the CPU features once, when they start, so all of them have to exist on the other machine. An older kernel or CRIU
 * cannot restore features that it does not know; patch levels do not count.
 */
export function misfit(from: Machine, to: Machine): Misfit | undefined {
  if (from.architecture !== to.architecture)
    return {
      reason: 'ArchitectureDiffers',
      message: `the memory is from ${from.architecture}, but the node is ${to.architecture}; use nodes of one architecture`,
    }
  const missing = missingFeatures(from, to)
  if (missing.length > 0)
    return {
      reason: 'CpuDiffers',
      message: `the processors here lack ${shortList(missing)}; use nodes of one processor type for a set, or let the hypervisor hide the difference`,
    }
  if (isOlder(to.kernel, from.kernel))
    return {
      reason: 'KernelOlder',
      message: `the memory is from Linux ${from.kernel}, but the node runs ${to.kernel}; upgrade this node`,
    }
  if (isOlder(to.criu, from.criu))
    return {
      reason: 'CriuOlder',
      message: `the memory is from CRIU ${from.criu}, but the agent here has ${to.criu}; run agents of one version`,
    }
  return undefined
}

function missingFeatures({ cpuFeatures: needed }: Machine, { cpuFeatures: there }: Machine): string[] {
  if (needed === undefined || there === undefined) return []
  const present = new Set(there)
  return needed.filter(feature => !present.has(feature))
}

const shortList = (names: readonly string[]): string =>
  names.length <= 5 ? names.join(', ') : `${names.slice(0, 5).join(', ')} and ${names.length - 5} more`

/** Compares the first two numbers. A version that cannot be parsed is not older. */
function isOlder(version: string, than: string): boolean {
  const [a, b] = [numbersOf(version), numbersOf(than)]
  if (a === undefined || b === undefined) return false
  return a.major < b.major || (a.major === b.major && a.minor < b.minor)
}

function numbersOf(version: string): { readonly major: number; readonly minor: number } | undefined {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version) ?? []
  return major === undefined || minor === undefined
    ? undefined
    : { major: Number(major), minor: Number(minor) }
}
