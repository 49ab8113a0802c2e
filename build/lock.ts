/**
 * `npm run lock-packages -- [set...]`: writes debian.lock.json, the files that the signed lists of the Debian archives
 * name at present for the images, for every architecture that they can be built for. With names of sets it renews only
 * these, and the date stays. Downloads only lists.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PackageFile, packageIndex } from './apt.ts'
import { architectures } from './architecture.ts'
import { type DebianLock, differences, lockPath, lockText, readLock } from './debian-lock.ts'
import { packageSets, type SetName, setNames } from './package-sets.ts'

type Sets = Partial<Record<SetName, Record<string, readonly PackageFile[]>>>

async function presentSets(scratch: string, names: readonly SetName[]): Promise<Sets> {
  const sets: Sets = {}
  for (const architecture of architectures) {
    for (const suite of new Set(names.map(name => packageSets[name].suite))) {
      const index = await packageIndex(join(scratch, `${suite}-${architecture}`), suite, architecture)
      for (const name of names.filter(it => packageSets[it].suite === suite))
        sets[name] = { ...sets[name], [architecture]: await index.files(packageSets[name]) }
    }
  }
  return sets
}

if (import.meta.main) {
  const asked = process.argv.slice(2)
  const chosen = asked.length === 0 ? setNames : setNames.filter(name => asked.includes(name))
  if (asked.length > 0 && chosen.length < asked.length) throw new Error(`sets: ${setNames.join(', ')}`)
  const scratch = await mkdtemp(join(tmpdir(), 'understudy-lock-'))
  try {
    const before = await readLock().catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    const present: Sets = { ...before?.sets, ...(await presentSets(scratch, chosen)) }
    const sets = Object.fromEntries(setNames.map(name => [name, present[name]])) as DebianLock['sets']
    const today = new Date().toISOString().slice(0, 10)
    const date = asked.length === 0 ? today : (before?.date ?? today)
    await writeFile(lockPath, lockText({ date, sets }))
    for (const name of setNames)
      for (const architecture of architectures)
        for (const change of differences(
          before?.sets[name]?.[architecture] ?? [],
          sets[name][architecture] ?? [],
        ))
          console.log(`${name} ${architecture}: ${change}`)
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}
