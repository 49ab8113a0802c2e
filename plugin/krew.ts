/** The manifest by which krew installs the plugin. */
import { stringify } from 'yaml'
import { type Platform, programNameOn } from './platform.ts'

export interface Archive {
  readonly platform: Platform
  /** Name of the file. */
  readonly name: string
  /** Hex. */
  readonly sha256: string
}

/** An address that cannot exist. `--base-url` names the real one. */
export const noAddress = 'https://understudy.invalid/releases'

export const licences = ['LICENSE', 'NOTICES'] as const

/** Returns the manifest for archives that can be fetched below an address. */
export function krewManifest(version: string, baseUrl: string, archives: readonly Archive[]): string {
  return stringify({
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'understudy' },
    spec: {
      version: `v${version}`,
      homepage: 'https://understudy.invalid',
      shortDescription: 'Show and manage BackupPodSets and their memory',
      description: [
        'Shows sets of pods with hot and cold backups, how their memory is protected, and what',
        'keeps them from it. Performs checkpoints, planned failovers, moves and drills, and',
        'examines the installation of the operator Understudy.',
      ].join('\n'),
      caveats: 'It needs the operator Understudy in the cluster; `kubectl understudy doctor` examines it.',
      platforms: archives.map(({ platform, name, sha256 }) => {
        const [os, arch] = platform.split('-')
        const program = programNameOn(platform)
        return {
          selector: { matchLabels: { os, arch } },
          uri: `${baseUrl.replace(/\/+$/, '')}/${name}`,
          sha256,
          bin: program,
          files: [program, ...licences].map(from => ({ from, to: '.' })),
        }
      }),
    },
  })
}
