/** The types of functions that write a generation to a stream and read it: see src/checkpoint/delta.ts. */
import type { Manifest } from '../../checkpoint/manifest.ts'
import type { Draft, Stored } from '../../checkpoint/store.ts'

interface Cancel {
  readonly signal?: AbortSignal
}

export type Encode = (base: Stored | undefined, next: Stored, cancel?: Cancel) => AsyncIterable<Buffer>

export type Apply = (
  stream: AsyncIterable<Buffer>,
  base: Stored | undefined,
  draft: Draft,
  options?: Cancel & { readonly accept?: (manifest: Manifest) => void },
) => Promise<Stored>
