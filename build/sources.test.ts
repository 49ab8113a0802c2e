import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { debianArchives } from './sources.ts'

let etc = ''
beforeEach(async () => {
  etc = await mkdtemp(join(tmpdir(), 'understudy-etc-'))
  await mkdir(join(etc, 'apt/sources.list.d'), { recursive: true })
  await writeFile(join(etc, 'os-release'), 'ID=debian\nVERSION_CODENAME=bookworm\n')
})
afterEach(() => rm(etc, { recursive: true, force: true }))

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

test('deb822 sources, with the security archive', async () => {
  await writeFile(
    join(etc, 'apt/sources.list.d/debian.sources'),
    `Types: deb
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /keys/debian.gpg

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components:
 main
`,
  )
  expect(await debianArchives(etc)).toEqual({
    main: { uri: 'http://mirror.example/debian', signedBy: '/keys/debian.gpg' },
    security: { uri: 'http://mirror.example/security', signedBy: KEYRING },
  })
})

test('one-line sources, with and without options; other repositories are passed over', async () => {
  await writeFile(
    join(etc, 'apt/sources.list'),
    `# deb http://commented.example bookworm main
deb [arch=amd64 signed-by=/keys/a.gpg] https://mirror.example/debian bookworm main contrib
deb-src https://mirror.example/source bookworm-security main
`,
  )
  await writeFile(join(etc, 'apt/sources.list.d/other.list'), 'deb https://other.example stable main\n')
  expect(await debianArchives(etc)).toEqual({
    main: { uri: 'https://mirror.example/debian', signedBy: '/keys/a.gpg' },
  })
})

test('D10.replay: lists of packages that are over are refused, of every suite', async () => {
  const code = await readFile(new URL('./apt.ts', import.meta.url), 'utf8')
  expect([...code.matchAll(/Check-Valid-Until', '(\w+)'/g)].map(([, value]) => value)).toEqual(['true'])
})

test('Ubuntu takes the archives of Debian that are named, if it has the keys of Debian, and never its own', async () => {
  await writeFile(
    join(etc, 'os-release'),
    'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n',
  )
  await writeFile(join(etc, 'apt/sources.list'), 'deb http://archive.example/ubuntu noble main universe\n')
  const keyring = join(etc, 'debian.gpg')
  await expect(debianArchives(etc, keyring)).rejects.toThrow(
    /Ubuntu does not have Debian's keys .*: sudo apt-get install debian-archive-keyring/,
  )
  await writeFile(keyring, '')
  expect(await debianArchives(etc, keyring, 'http://mirror.example/debian/')).toEqual({
    main: { uri: 'http://mirror.example/debian', signedBy: keyring },
    security: { uri: 'http://mirror.example/debian-security', signedBy: keyring },
  })
})

test('a disabled stanza does not count, and without an archive the message says what to do', async () => {
  await writeFile(
    join(etc, 'apt/sources.list.d/debian.sources'),
    'Enabled: no\nTypes: deb\nURIs: http://x.example\nSuites: bookworm\nComponents: main\n',
  )
  await expect(debianArchives(etc)).rejects.toThrow(
    /no Debian archive in .*name one there, or build them with docker/,
  )
})
