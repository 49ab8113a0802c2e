import { copyFile, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../build/run.ts'
import { type NodeOptions, nodePackage, readNodeLock } from './node.ts'
import { ownPlatform, type Platform, programNameOn } from './platform.ts'

/**
 * Builds the single executable of a platform: its Node with the program in it. Node of this machine's platform does
 * that, in the same version. The same program and the same lock give the same bytes.
 *
 * @param program path of the bundled program
 * @param directory gets the executable
 * @returns path of the executable
 */
export async function buildExecutable(
  platform: Platform,
  program: string,
  directory: string,
  options: NodeOptions = {},
): Promise<string> {
  const lock = await readNodeLock()
  const builder = await nodePackage(ownPlatform(), lock, options)
  const target = await nodePackage(platform, lock, options)
  options.progress?.(`write the executable for ${platform}`)
  const scratch = await mkdtemp(join(tmpdir(), 'understudy-plugin-'))
  try {
    await copyFile(program, join(scratch, 'main.cjs'))
    await writeFile(join(scratch, 'config.json'), JSON.stringify({ ...config, executable: target.binary }))
    await run(builder.binary, ['--build-sea', 'config.json'], {
      cwd: scratch,
      ...(options.signal && { signal: options.signal }),
    })
    await mkdir(directory, { recursive: true })
    const path = join(directory, programNameOn(platform))
    // Replace it by a rename: a process may be running the existing file.
    await copyFile(join(scratch, 'executable'), `${path}.new`)
    await rename(`${path}.new`, path)
    return path
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

/** Relative paths: Node writes the name of the main file into the executable. */
const config = {
  main: 'main.cjs',
  output: 'executable',
  disableExperimentalSEAWarning: true,
  // Its content depends on the processor on which it is built.
  useCodeCache: false,
  // NODE_OPTIONS of a user are for other programs.
  execArgvExtension: 'none',
}
