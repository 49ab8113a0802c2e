import { readFile } from 'node:fs/promises'

/** Returns the version in package.json, which is the tag of our own images and is built into our programs. */
export async function projectVersion(): Promise<string> {
  const text = await readFile(new URL('../package.json', import.meta.url), 'utf8')
  const { version } = JSON.parse(text) as { version: string }
  return version
}
