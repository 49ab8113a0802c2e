import { Command } from 'commander'
import { imageProblems, thisMachine } from '../build/machine.ts'
import { allImageNames, ensureImages, type ImageName, imageNames } from './build.ts'
import { unpackImage } from './unpack.ts'

interface Flags {
  readonly json?: true
  readonly paths?: true
  readonly locked?: true
  readonly rootfs?: string
}

const program = new Command('npm run image --')
  .description('Builds container images as OCI archives, without a docker daemon, and prints where they are.')
  .argument('[name...]', `images to build: ${allImageNames.join(', ')} (default: ${imageNames.join(', ')})`)
  .option('--locked', "fail if Debian's archive has dropped a package of build/debian.lock.json")
  .option('--json', 'print the result as JSON')
  .option('--paths', 'print only the paths of the archives, one a line')
  .option(
    '--rootfs <directory>',
    'also write the files of the one named image to a directory, as the Dockerfiles do',
  )
  .action(async (names: string[], { json, paths, rootfs, locked }: Flags) => {
    const unknown = names.filter(name => !(allImageNames as readonly string[]).includes(name))
    if (unknown.length > 0)
      program.error(`unknown image: ${unknown.join(', ')}; there are ${allImageNames.join(', ')}`)
    if (rootfs !== undefined && names.length !== 1) program.error('--rootfs needs exactly one image')
    const problems = await imageProblems(await thisMachine())
    if (problems.length > 0)
      program.error(`this machine cannot build images yet:\n${problems.map(it => `- ${it}`).join('\n')}`)
    const aborted = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => aborted.abort(new Error(`stopped by ${signal}`)))
    }
    const started = performance.now()
    const built = await ensureImages(names.length > 0 ? (names as ImageName[]) : imageNames, {
      signal: aborted.signal,
      ...(locked && { locked }),
      progress: message => {
        const seconds = ((performance.now() - started) / 1000).toFixed(1)
        process.stderr.write(`${seconds.padStart(6)} s  ${message}\n`)
      },
    })
    if (rootfs !== undefined) {
      for (const image of Object.values(built)) await unpackImage(image.path, rootfs)
    }
    if (json) {
      console.log(JSON.stringify(built, undefined, 2))
      return
    }
    for (const image of Object.values(built)) {
      if (paths) {
        console.log(image.path)
        continue
      }
      const megabytes = (image.size / 1e6).toFixed(2)
      console.log(`${image.ref}\n  ${image.digest}\n  ${image.path} (${megabytes} MB)`)
    }
  })

try {
  await program.parseAsync()
} catch (error) {
  console.error(`image: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
