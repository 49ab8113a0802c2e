import { stat } from 'node:fs/promises'
import { CommandError, run } from './exec.ts'
import { PlaygroundError } from './failure.ts'
import { archiveKey } from './state.ts'

/** Returns the argv that runs a program on a node, in all of the node's namespaces. */
export type OnNode = (argv: readonly string[]) => readonly string[]

/** An image in a node's containerd. */
export interface NodeImage {
  /** Full name, such as docker.io/library/nginx:1.14.2. */
  readonly name: string
  /** Digest of the manifest or index, sha256:... */
  readonly digest: string
}

/** Imports archives (OCI layout or docker-archive, plain or gzipped tar) into one node's containerd, one by one. */
export async function importImages(
  onNode: OnNode,
  archives: readonly string[],
  signal: AbortSignal | undefined,
  report: (archive: string) => void = () => {},
): Promise<void> {
  for (const archive of archives) {
    report(archive)
    try {
      await run(onNode(['ctr', '--namespace', 'k8s.io', 'images', 'import', '-']), {
        inputFile: archive,
        signal,
      })
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      throw new PlaygroundError(`containerd cannot import the image archive ${archive}`, {
        cause: error,
        advice: 'use a tar of an OCI image layout, or one written by "docker save"',
      })
    }
  }
}

export async function listImages(onNode: OnNode): Promise<NodeImage[]> {
  const text = await run(onNode(['ctr', '--namespace', 'k8s.io', 'images', 'list']))
  return parseImageList(text)
}

/** Parses the table of `ctr images list`: columns REF TYPE DIGEST SIZE PLATFORMS LABELS. */
export function parseImageList(text: string): NodeImage[] {
  return text
    .trim()
    .split('\n')
    .slice(1)
    .flatMap(line => {
      const [name, , digest] = line.split(/\s+/)
      // The table also lists the same image under its bare digest, for the kubelet.
      return name === undefined || digest === undefined || name.startsWith('sha256:')
        ? []
        : [{ name, digest }]
    })
}

export async function archiveKeys(archives: readonly string[]): Promise<{ path: string; key: string }[]> {
  return Promise.all(
    archives.map(async path => {
      try {
        return { path, key: archiveKey(path, await stat(path)) }
      } catch (error) {
        throw new PlaygroundError(`cannot read the image archive ${path}`, { cause: error })
      }
    }),
  )
}
