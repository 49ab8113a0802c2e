import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { pack } from 'tar-stream'

/** A file of an archive. */
export interface TarFile {
  readonly path: string
  readonly text: string
}

/**
 * Writes files as a compressed archive that only its owner may read. Removes it again if that fails.
 *
 * @throws if the file exists already
 */
export async function writeTar(path: string, files: readonly TarFile[], mtime: Date): Promise<void> {
  const tar = pack()
  // The pipeline reports errors; the archive and each file in it emit them, too.
  const reported = () => undefined
  tar.on('error', reported)
  const out = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  let isOurs = false
  out.once('open', () => {
    isOurs = true
  })
  try {
    const written = pipeline(tar, createGzip(), out)
    for (const { path: name, text } of files)
      tar.entry({ name, mode: 0o600, mtime }, text).on('error', reported)
    tar.finalize()
    await written
  } catch (error) {
    if (isOurs) await rm(path, { force: true })
    throw error
  }
}
