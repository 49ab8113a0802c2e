import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { clusterProblems, imageProblems, type Machine, missingOf, programs } from './machine.ts'

let etc = ''
beforeEach(async () => {
  etc = await mkdtemp(join(tmpdir(), 'understudy-machine-'))
  await mkdir(join(etc, 'apt/sources.list.d'), { recursive: true })
})
afterEach(() => rm(etc, { recursive: true, force: true }))

const debianTools = ['apt-get', ...Object.keys(programs)]

interface Faked {
  readonly release?: string
  readonly sources?: string
  readonly tools?: readonly string[]
  readonly isRoot?: boolean
  readonly platform?: NodeJS.Platform
  readonly kernel?: string
  /** True: the package debian-archive-keyring is installed. */
  readonly keyring?: boolean
  readonly archive?: string
}

async function machine(faked: Faked): Promise<Machine> {
  const { tools = debianTools, isRoot = true, platform = 'linux', kernel = 'Linux version 6.12.0' } = faked
  if (faked.release !== undefined) await writeFile(join(etc, 'os-release'), faked.release)
  if (faked.sources !== undefined) await writeFile(join(etc, 'apt/sources.list'), faked.sources)
  const keyring = join(etc, 'debian-archive-keyring.gpg')
  if (faked.keyring === true) await writeFile(keyring, '')
  const has = (program: string) => Promise.resolve(tools.includes(program))
  return { platform, etc, keyring, archive: faked.archive, isRoot, kernel, has }
}

const debian: Faked = {
  release: 'NAME="Debian GNU/Linux"\nID=debian\nVERSION_CODENAME=trixie\n',
  sources: 'deb http://archive.example/debian trixie main\n',
}
const ubuntu: Faked = {
  release: 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n',
  sources: 'deb http://archive.ubuntu.com/ubuntu noble main universe\n',
}
const fedora: Faked = {
  release: 'NAME="Fedora Linux"\nID=fedora\nVERSION_ID=43\n',
  tools: ['dnf', 'bash', 'ip', 'mount', 'nsenter', 'openssl', 'setpriv', 'unshare'],
}

describe('D19.machine: images', () => {
  const problems = async (faked: Faked) => imageProblems(await machine(faked))

  test('are built on Debian, also without root', async () => {
    expect(await problems(debian)).toEqual([])
    expect(await problems({ ...debian, isRoot: false })).toEqual([])
  })

  test('are built on Ubuntu, also in WSL, with the keys of Debian', async () => {
    expect(await problems(ubuntu)).toEqual([
      "images consist of Debian packages, and Ubuntu does not have Debian's keys to check them: sudo apt-get install debian-archive-keyring",
    ])
    expect(await problems({ ...ubuntu, keyring: true })).toEqual([
      expect.stringMatching(/archives of Ubuntu are not Debian's: set UNDERSTUDY_DEBIAN_ARCHIVE/),
    ])
    const archive = 'http://archive.example/debian'
    expect(await problems({ ...ubuntu, keyring: true, archive })).toEqual([])
  })

  test('say all that is missing at once, with the command that installs it', async () => {
    const bare = { ...ubuntu, isRoot: false, tools: ['apt-get', 'dpkg-deb'] }
    expect(await problems(bare)).toEqual([
      expect.stringContaining('debian-archive-keyring'),
      'these programs are missing: gcc: sudo apt-get install gcc libc6-dev',
    ])
  })

  test.each<[string, Faked, RegExp]>([
    [
      'Fedora',
      fedora,
      /^images consist of Debian packages, and Fedora Linux has no apt.*docs\/try-on-kind\.md$/,
    ],
    ['macOS', { platform: 'darwin', tools: [] }, /^images are built on Linux, and this is macOS.*docker/],
    ['Windows', { platform: 'win32', tools: [] }, /this is Windows.*WSL 2/],
  ])('are not built on %s, which says where they are', async (_, faked, message) => {
    const found = await problems(faked)
    expect(found).toEqual([expect.stringMatching(message)])
  })
})

describe('D19.machine: the playground', () => {
  const problems = async (faked: Faked) => clusterProblems(await machine(faked))
  const wsl = (kernel: string) => ({ ...ubuntu, kernel: `Linux version ${kernel}` })

  test.each<[string, Faked]>([
    ['Debian', debian],
    ['Ubuntu', ubuntu],
    ['Fedora', fedora],
    ['WSL 2', wsl('6.6.87.2-microsoft-standard-WSL2 (root@1)')],
  ])('may be tried on %s', async (_, faked) => {
    expect(await problems(faked)).toEqual([])
  })

  test.each<[string, Faked, RegExp]>([
    ['macOS', { platform: 'darwin' }, /needs Linux, and this is macOS.*--use-current-cluster/],
    ['WSL 1', wsl('4.4.0-19041-Microsoft (Microsoft@Microsoft.com)'), /wsl --set-version/],
    ['a user without root', { ...debian, isRoot: false }, /with sudo/],
  ])('says at once why not on %s', async (_, faked, message) => {
    expect(await problems(faked)).toEqual([expect.stringMatching(message)])
  })

  test('names missing programs as each distribution calls them', async () => {
    const missing = async (faked: Faked) => missingOf(await machine(faked), Object.keys(programs))
    expect(await missing({ ...ubuntu, tools: debianTools.filter(name => name !== 'ip') })).toEqual([
      'these programs are missing: ip: sudo apt-get install iproute2',
    ])
    expect(await missing(fedora)).toEqual([
      'these programs are missing: dpkg-deb, gcc: sudo dnf install dpkg gcc glibc-devel',
    ])
    expect(await missing({ tools: [] })).toEqual([expect.stringContaining('with your package manager')])
  })
})
