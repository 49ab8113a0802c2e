import type { Installation } from './installation.ts'

/** The program that installed Understudy here. It has to apply what is missing, too. */
export type Installer = { readonly type: 'Kustomize' } | { readonly type: 'Helm'; readonly release: string }

/** Helm writes this annotation on every object of a release. */
const releaseName = 'meta.helm.sh/release-name'

export function installerOf({ operator }: Pick<Installation, 'operator'>): Installer {
  const release = operator.ok ? operator.value.metadata.annotations?.[releaseName] : undefined
  return release === undefined ? { type: 'Kustomize' } : { type: 'Helm', release }
}

/**
 * Returns the command that applies a folder of the manifests, as Markdown. In a release of Helm `kubectl apply -k` would take away the
 * values of the release, and the next upgrade would fail on conflicts.
 */
export function applying(folder: string, installer: Installer): string {
  switch (installer.type) {
    case 'Kustomize':
      return `\`kubectl apply -k ${folder}\``
    case 'Helm':
      return `\`helm upgrade ${installer.release} CHART --reset-then-reuse-values\``
    default:
      return installer satisfies never
  }
}
