import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import type { Subject } from './provenance.ts'

/** Returns the SHA-256 of a file, hex. */
export async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

/** Returns the text that `sha256sum --check` reads. */
export const checksumsText = (files: readonly Subject[]): string =>
  files.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join('')

/** @throws for a line that `checksumsText` would not have written */
export function parseChecksums(text: string): readonly Subject[] {
  return text
    .split('\n')
    .filter(line => line !== '')
    .map(line => {
      // A name with a slash would lead out of the directory of the release.
      const [, sha256, name] = /^([0-9a-f]{64}) {2}([\w.-]+)$/.exec(line) ?? []
      if (sha256 === undefined || name === undefined)
        throw new Error(`not a line of SHA256SUMS: ${JSON.stringify(line)}`)
      return { name, sha256 }
    })
}

/** Returns how one list differs from another, a sentence for each file. */
export function checksumDifferences(from: readonly Subject[], to: readonly Subject[]): readonly string[] {
  const [old, now] = [from, to].map(files => new Map(files.map(({ name, sha256 }) => [name, sha256])))
  return [...new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])])].sort().flatMap(name => {
    const [a, b] = [old?.get(name), now?.get(name)]
    return a === b ? [] : [`${name}: ${a ?? 'missing'} is now ${b ?? 'missing'}`]
  })
}
