import { createWriteStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type Header, pack } from 'tar-stream'

export interface Member extends Partial<Header> {
  readonly name: string
  readonly content?: string
}

/** Writes an archive and a list, as another node could have made them, to a directory. */
export async function forgeArchive(into: string, members: readonly Member[], names: readonly string[]) {
  const [archive, list] = [join(into, 'archive'), join(into, 'list')]
  const packed = pack()
  for (const { content = '', ...header } of members) packed.entry(header, content)
  packed.finalize()
  await pipeline(packed, createWriteStream(archive))
  await writeFile(list, names.map(name => `${name}\0`).join(''))
  return { archive, list }
}
