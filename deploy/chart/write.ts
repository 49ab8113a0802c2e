import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Writes files by their paths below a directory, after removing the files of before. @returns the directory */
export async function writeFiles(directory: string, files: ReadonlyMap<string, string>): Promise<string> {
  await rm(directory, { recursive: true, force: true })
  for (const [path, content] of files) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await writeFile(join(directory, path), content)
  }
  return directory
}
