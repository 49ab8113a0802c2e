/** How a release was made, as an in-toto statement with a predicate of SLSA. */

export interface Subject {
  readonly name: string
  /** Hex. */
  readonly sha256: string
}

export interface Source {
  /** Hex. */
  readonly commit: string
  /** Time of the commit: it stands for the time of the release, so that the same commit gives the same bytes. */
  readonly time: Date
}

export interface Build {
  readonly source: Source
  readonly version: string
  readonly architectures: readonly string[]
  readonly registry?: string
  /** Files that pin what is downloaded. */
  readonly locks: readonly Subject[]
  /** Versions of the programs that no lock pins, by name. */
  readonly tools: Readonly<Record<string, string>>
  /** URI of the machine or service that built. */
  readonly builder: string
}

export const statementType = 'application/vnd.in-toto+json'

export interface Statement {
  readonly _type: 'https://in-toto.io/Statement/v1'
  readonly subject: readonly { readonly name: string; readonly digest: { readonly sha256: string } }[]
  readonly predicateType: 'https://slsa.dev/provenance/v1'
  readonly predicate: unknown
}

/** It names no times: those of a build differ each time. */
export function provenanceOf(build: Build, subjects: readonly Subject[]): Statement {
  const { source, version, architectures, registry, locks, tools, builder } = build
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: subjects.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'https://understudy.invalid/npm-run-release/v1',
        externalParameters: { version, architectures, ...(registry !== undefined && { registry }) },
        internalParameters: { tools },
        resolvedDependencies: [
          { name: 'source', digest: { gitCommit: source.commit } },
          ...locks.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
        ],
      },
      runDetails: { builder: { id: builder } },
    },
  }
}
