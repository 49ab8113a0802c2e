import type { ImageSource } from '../archive.ts'
import type { DebianOptions } from '../debian.ts'

/** Says what is in an image. Whatever is slow to make on the way (compiled, downloaded) is cached by its inputs. */
export type Recipe = (options: DebianOptions & { readonly version: string }) => Promise<ImageSource>

/** Labels that every image of ours carries, beside its own. */
export function labels(title: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    'org.opencontainers.image.title': title,
    'org.opencontainers.image.licenses': 'Apache-2.0',
    ...more,
  }
}
