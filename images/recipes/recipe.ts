import type { DebianOptions } from '../../build/debian.ts'
import type { ImageSource } from '../archive.ts'

/** Describes the contents of an image. Slow intermediate results (compiled, downloaded) are cached by their inputs. */
export type Recipe = (options: DebianOptions & { readonly version: string }) => Promise<ImageSource>

/** Returns the labels that all our images carry, and the image's own. */
export function labels(title: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    'org.opencontainers.image.title': title,
    'org.opencontainers.image.licenses': 'Apache-2.0',
    ...more,
  }
}
