/** The platforms of the plugin, by the names that Go, Kubernetes and krew use. */
export const platforms = [
  'linux-amd64',
  'linux-arm64',
  'darwin-amd64',
  'darwin-arm64',
  'windows-amd64',
] as const
export type Platform = (typeof platforms)[number]

const systems: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'darwin', win32: 'windows' }
const processors: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

/** Returns this machine's platform. @throws if there is no executable for it. */
export function ownPlatform(system: string = process.platform, processor: string = process.arch): Platform {
  const name = `${systems[system] ?? system}-${processors[processor] ?? processor}`
  const found = platforms.find(each => each === name)
  if (found === undefined)
    throw new Error(
      `there is no single executable for ${name}, only for ${platforms.join(', ')}; ` +
        '`npm run cli-build -- --script` builds a file that needs Node 24',
    )
  return found
}

export const programNameOn = (platform: Platform): string =>
  platform.startsWith('windows-') ? 'kubectl-understudy.exe' : 'kubectl-understudy'
