/** The needs of this machine beyond those of a playground. */
import { type Machine, thisMachine } from '../build/machine.ts'
import { PlaygroundError } from '../playground/failure.ts'

/** Programs that are called, and Debian's packages with them. */
const programs: Readonly<Record<string, string>> = {
  mke2fs: 'e2fsprogs',
  mmdebstrap: 'mmdebstrap',
  'qemu-system-x86_64': 'qemu-system-x86',
  ssh: 'openssh-client',
  'ssh-keygen': 'openssh-client',
}

/**
 * Checks that the programs are installed. It installs nothing: an emulator is not a small thing to add to a machine.
 * @throws PlaygroundError that names all missing ones, and the command that installs them
 */
export async function checkRequirements(machine?: Pick<Machine, 'has'>): Promise<void> {
  const { has } = machine ?? (await thisMachine())
  const missing: string[] = []
  for (const program of Object.keys(programs)) if (!(await has(program))) missing.push(program)
  if (missing.length === 0) return
  const packages = [...new Set(missing.map(program => programs[program]))]
  throw new PlaygroundError(`these programs are missing: ${missing.join(', ')}`, {
    advice: `apt-get install --no-install-recommends ${packages.join(' ')}`,
  })
}
