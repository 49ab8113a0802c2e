/**
 * `npm run lock-packages`: writes debian.lock.json, the files that the signed lists of the Debian archives name at
 * present for the images, for every architecture that they can be built for. Downloads only lists.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PackageFile, packageIndex } from './apt.ts'
import { type DebianLock, differences, lockPath, lockText, readLock } from './debian-lock.ts'
import { packageSets, type SetName, setNames } from './package-sets.ts'

export const lockedArchitectures = ['amd64', 'arm64'] as const

async function presentSets(scratch: string): Promise<DebianLock['sets']> {
  const sets: Partial<Record<SetName, Record<string, readonly PackageFile[]>>> = {}
  for (const architecture of lockedArchitectures) {
    for (const suite of new Set(setNames.map(name => packageSets[name].suite))) {
      const index = await packageIndex(join(scratch, `${suite}-${architecture}`), suite, architecture)
      for (const name of setNames.filter(it => packageSets[it].suite === suite))
        sets[name] = { ...sets[name], [architecture]: await index.files(packageSets[name]) }
    }
  }
  return Object.fromEntries(setNames.map(name => [name, sets[name]])) as DebianLock['sets']
}

if (import.meta.main) {
  const scratch = await mkdtemp(join(tmpdir(), 'understudy-lock-'))
  try {
    const before = await readLock().catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    const sets = await presentSets(scratch)
    await writeFile(lockPath, lockText({ date: new Date().toISOString().slice(0, 10), sets }))
    for (const name of setNames)
      for (const architecture of lockedArchitectures)
        for (const change of differences(
          before?.sets[name]?.[architecture] ?? [],
          sets[name][architecture] ?? [],
        ))
          console.log(`${name} ${architecture}: ${change}`)
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}
