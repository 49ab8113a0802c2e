/** An entry in an image's file system. Paths are absolute inside the image; owner and group default to root. */
export type Entry =
  | {
      readonly type: 'file'
      readonly path: string
      /** Permission bits, for example 0o755. */
      readonly mode: number
      /** The bytes, or the path of a regular file on this machine that contains them. */
      readonly content: Uint8Array | { readonly source: string }
      readonly uid?: number
      readonly gid?: number
    }
  | {
      readonly type: 'directory'
      readonly path: string
      readonly mode: number
      readonly uid?: number
      readonly gid?: number
    }
  | { readonly type: 'symlink'; readonly path: string; readonly target: string }

/** Returns a file entry with text as its content; mode 0644. */
export function textFile(path: string, text: string): Entry {
  return { type: 'file', path, mode: 0o644, content: new TextEncoder().encode(text) }
}

/**
 * Returns the entries in the order of a layer: by path, parents first. Adds missing parent directories (0755, owned by
 * root). The result does not depend on the order of the argument, nor on that of readdir.
 * @throws if two entries have the same path
 */
export function orderEntries(entries: readonly Entry[]): Entry[] {
  const byPath = new Map<string, Entry>()
  for (const entry of entries) {
    if (!/^(\/[^/]+)+$/.test(entry.path) || entry.path.split('/').includes('..')) {
      throw new Error(`not an absolute, normalised path: ${JSON.stringify(entry.path)}`)
    }
    if (byPath.has(entry.path)) throw new Error(`two entries for ${entry.path}`)
    byPath.set(entry.path, entry)
  }
  for (const entry of entries) {
    for (const parent of parentsOf(entry.path)) {
      if (!byPath.has(parent)) byPath.set(parent, { type: 'directory', path: parent, mode: 0o755 })
    }
  }
  // Compare by segment, not by string: '/a-b' must not come between '/a' and '/a/b'.
  return [...byPath.values()].sort((a, b) => comparePaths(a.path, b.path))
}

function parentsOf(path: string): string[] {
  const segments = path.split('/').slice(1, -1)
  return segments.map((_, index) => `/${segments.slice(0, index + 1).join('/')}`)
}

function comparePaths(a: string, b: string): number {
  const left = a.split('/')
  const right = b.split('/')
  for (let index = 0; index < Math.min(left.length, right.length); index++) {
    const [l, r] = [left[index] ?? '', right[index] ?? '']
    if (l !== r) return l < r ? -1 : 1
  }
  return left.length - right.length
}
