/** Returns the GOARCH-style name of the architecture that images are built for: this machine's. */
export function imageArchitecture(arch: string = process.arch): string {
  switch (arch) {
    case 'x64':
      return 'amd64'
    case 'arm64':
      return 'arm64'
    default:
      throw new Error(`images can be built on x64 and arm64 machines, not on ${arch}`)
  }
}
