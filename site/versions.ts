/** The versions of a site: each has a folder of its own, and `versions.json` lists them. */

/** The folder of a build that is no release. */
export const unreleased = 'unreleased'

const release = /^v(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?$/

/** @throws Error if the text names no version */
export function parseVersion(text: string): string {
  if (text === unreleased || release.test(text)) return text
  throw new Error(`${JSON.stringify(text)} is no version: use one such as v1.2.3, or ${unreleased}`)
}

/** Order of versions: newest first, releases before their candidates, and `unreleased` at the end. */
export function newestFirst(a: string, b: string): number {
  const [first, second] = [release.exec(a), release.exec(b)]
  if (first === null || second === null) return Number(first === null) - Number(second === null)
  for (const part of [1, 2, 3]) {
    const difference = Number(second[part]) - Number(first[part])
    if (difference !== 0) return difference
  }
  const [candidate, other] = [first[4], second[4]]
  if (candidate === undefined || other === undefined)
    return Number(candidate !== undefined) - Number(other !== undefined)
  return other.localeCompare(candidate, 'en', { numeric: true })
}

export interface Versions {
  /** Version that the root of the site leads to: the newest release, if there is one. */
  readonly newest: string
  /** Newest first. */
  readonly versions: readonly string[]
}

/** Returns the list with one version added. */
export function withVersion(known: readonly string[], added: string): Versions {
  const versions = [...new Set([...known, added])].toSorted(newestFirst)
  const newest = versions.find(each => release.exec(each)?.[4] === undefined) ?? versions[0] ?? added
  return { newest, versions }
}

/** @throws Error if the text is not such a list */
export function parseVersions(text: string): readonly string[] {
  const parsed: unknown = JSON.parse(text)
  const versions =
    typeof parsed === 'object' && parsed !== null && 'versions' in parsed ? parsed.versions : undefined
  if (!Array.isArray(versions)) throw new Error('versions.json has no list of versions')
  return versions.map(each => parseVersion(String(each)))
}
