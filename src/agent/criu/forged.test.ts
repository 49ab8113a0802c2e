/**
 * Generations that another node has forged, restored by the real CRIU.
 *
 * Long because every forgery changes the same dump.
 */
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { forgeArchive, type Member } from '../../../native/testing/forged-archive.ts'
import { isAgentError } from '../../api/agent-errors.ts'
import { editImage, joinEntries, readImageBytes, splitEntries } from '../../checkpoint/images/image-file.ts'
import { unlimited } from '../../checkpoint/images/limits.ts'
import { decode, encode, message, one, textOf, type ValueOf } from '../../checkpoint/images/message.ts'
import {
  coreEntry,
  type credsEntry,
  ghostFileEntry,
  inventoryEntry,
  mmEntry,
} from '../../checkpoint/images/messages.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { holdCommand, serveCommand, type TestContainer } from '../preflight/test-container.ts'
import { cannotDump, hostFs, startTestNode, type TestNode } from '../testing/node.ts'
import { type TestContainers, testContainersOf } from '../testing/test-containers.ts'
import { createMemoryDriver } from './driver.ts'
import { beyondLimits, livingLimits } from './limits.ts'
import { livingRights } from './rights.ts'
import { nestedChildren, threadsOf } from './tree.ts'

const namedFile = message('file_entry', {
  type: one(1, 'uint32'),
  reg: one(
    3,
    message('reg_file_entry', {
      flags: one(2, 'uint32'),
      name: one(6, 'bytes'),
      size: one(8, 'uint64'),
      mode: one(10, 'uint32'),
    }),
  ),
})

const editCore = (edit: (core: ValueOf<typeof coreEntry>) => boolean) => async (images: string) => {
  for (const name of await readdir(images))
    if (/^core-\d+\.img$/.test(name)) await editImage(images, name, 'core', coreEntry, edit)
}
const editTask = (edit: (core: ValueOf<typeof precedenceCore>) => unknown) => async (images: string) => {
  for (const name of await readdir(images))
    if (/^core-\d+\.img$/.test(name))
      await editImage(images, name, 'core', precedenceCore, core => {
        edit(core)
        return true
      })
}
const precedenceCore = message('core_entry', {
  tc: coreEntry.fields.tc,
  threadCore: one(
    5,
    message('thread_core_entry', {
      schedNice: one(3, 'sint32'),
      schedPolicy: one(4, 'uint32'),
      schedPrio: one(5, 'uint32'),
    }),
  ),
})
const editCredentials = (set: (creds: ValueOf<typeof credsEntry>) => void) =>
  editCore(({ threadCore }) => {
    if (threadCore?.creds === undefined) return false
    set(threadCore.creds)
    return true
  })

const ghost = (mode: number) => ({ ...decode(ghostFileEntry, new Uint8Array()), uid: 0, gid: 0, mode })

/** Forgeries that give the memory of an unprivileged user more rights. */
const forgeries: readonly (readonly [string, (images: string) => Promise<unknown>])[] = [
  [
    'root',
    editCredentials(creds => {
      for (const id of ['uid', 'euid', 'suid', 'fsuid'] as const) creds[id] = 0
    }),
  ],
  [
    'a saved user to return to',
    editCredentials(creds => {
      creds.suid = 0
    }),
  ],
  [
    'another group',
    editCredentials(creds => {
      creds.groups = [0, 6]
    }),
  ],
  [
    'capabilities',
    editCredentials(creds => {
      for (const set of ['capPrm', 'capEff', 'capBnd'] as const) creds[set] = [1 << 21, 0]
    }),
  ],
  [
    'new privileges',
    editCredentials(creds => {
      creds.noNewPrivs = 0
    }),
  ],
]

describe.skipIf(cannotDump !== undefined)(`D10.forged: images of another node ${cannotDump ?? ''}`, () => {
  let node: TestNode
  let saved: Stored
  let testContainers: TestContainers
  const signal = new AbortController().signal
  const user = { options: ['--user', '1000'] }
  const deadlineMs = 60_000

  const understudy = () => testContainers.start({ role: 'understudy', command: holdCommand, ...user })
  beforeAll(async () => {
    node = await startTestNode()
    testContainers = testContainersOf(node, deadlineMs)
    const primary = await testContainers.start({ role: 'primary', command: serveCommand, ...user })
    await testContainers.ask(primary)
    saved = await testContainers.save(primary)
    await testContainers.stop()
  })
  afterEach(() => testContainers.stop())
  afterAll(() => node?.dispose())

  const images = () => join(saved.dir, 'containers', 'app', 'criu')
  /** Changes the generation while `work` runs. */
  const forged = async (forge: (images: string) => Promise<unknown>, work: () => Promise<void>) => {
    const before = new Map<string, Buffer>()
    for (const name of await readdir(images()))
      if (!name.startsWith('pages-')) before.set(name, await readFile(join(images(), name)))
    await forge(images())
    try {
      await work()
    } finally {
      for (const [name, bytes] of before) await writeFile(join(images(), name), bytes)
    }
  }
  /** Forges images that the driver has checked already, right before CRIU reads them. */
  const late = (forge: (images: string) => Promise<unknown>) =>
    createMemoryDriver({
      ...node.dependencies,
      sentinel: {
        ...node.sentinel,
        async spawn(request, ...more) {
          const copy = request.files.find(({ fd }) => fd === 201)?.path
          if (request.namespaces === 'clone' && copy !== undefined) await forge(copy)
          return node.sentinel.spawn(request, ...more)
        },
      },
    })
  const restore = async (into: TestContainer, driver = node.driver, lazily?: 'Always'): Promise<string> => {
    const located = await testContainers.locate(into)
    return driver.restore(located, saved, { deadlineMs, signal, ...(lazily && { lazily }) }).then(
      () => 'restored',
      (error: unknown) => (isAgentError(error) ? error.code : String(error)),
    )
  }
  const nothingIsLeft = (of: TestContainer) => expect.poll(() => nestedChildren(hostFs, of.init)).toEqual([])

  it('what was not forged is restored', async () => {
    expect(await restore(await understudy())).toBe('restored')
  })

  it.each(forgeries)('before the restore: %s', async (_, forge) => {
    const into = await understudy()
    await forged(forge, async () => expect(await restore(into)).toBe('CredentialsExceed'))
    await nothingIsLeft(into)
  })

  it.each(forgeries)('and again on the stopped processes: %s', async (_, forge) => {
    const into = await understudy()
    // CRIU has restored the forged rights; the second check kills the processes.
    expect(await restore(into, late(forge))).toBe('CredentialsExceed')
    await nothingIsLeft(into)
  })

  it.each(forgeries)('and when memory comes later: %s', async (_, forge) => {
    const into = await understudy()
    expect(await restore(into, late(forge), 'Always')).toBe('CredentialsExceed')
    await nothingIsLeft(into)
    expect(await readdir(join(node.directory, 'work'))).toEqual([])
  })

  /**
   * Properties that only CRIU may set. The driver lowers those in the image to the container's, or refuses the image.
   * If CRIU sees the forgery, the driver kills the result.
   */
  const precedence: readonly (readonly [string, (images: string) => Promise<unknown>, early: string])[] = [
    [
      'a limit',
      editTask(({ tc }) => {
        for (const limit of tc?.rlimits?.rlimits ?? [])
          Object.assign(limit, { cur: unlimited, max: unlimited })
      }),
      'restored',
    ],
    [
      'a score against being killed',
      editTask(({ tc }) => Object.assign(tc ?? {}, { oomScoreAdj: -1000 })),
      'restored',
    ],
    [
      'the policy of the first to run',
      editTask(({ threadCore }) => Object.assign(threadCore ?? {}, { schedPolicy: 1, schedPrio: 99 })),
      'CredentialsExceed',
    ],
    [
      'a nice',
      editTask(({ threadCore }) => Object.assign(threadCore ?? {}, { schedNice: -19 })),
      'CredentialsExceed',
    ],
  ]

  it.each(precedence)('of precedence: %s', async (_, forge, early) => {
    const into = await understudy()
    // CRIU has restored the forged values, and the driver kills the stopped processes. On machines where root may not
    // set these values, CRIU ignores the failure.
    const said = await restore(into, late(forge))
    if (said !== 'restored') {
      expect(said).toBe('CredentialsExceed')
      await nothingIsLeft(into)
    }
    const [rights, own] = [
      await livingRights(hostFs, into.init.pid),
      await livingLimits(hostFs, into.init.pid),
    ]
    if (rights === undefined || own === undefined) throw new Error('the understudy is gone')
    for (const { pid } of await nestedChildren(hostFs, into.init))
      for (const thread of await threadsOf(hostFs, pid)) {
        const held = await livingLimits(hostFs, thread)
        expect(held && beyondLimits(held, own, rights)).toEqual([])
      }
    await forged(forge, async () => expect(await restore(into)).toBe(early))
  })

  it('areas and pages that no process can have', async () => {
    const into = await understudy()
    const forge = (dir: string) =>
      editImage(dir, 'mm-1.img', 'mm', mmEntry, ({ vmas }) => {
        const [first, second] = vmas
        if (first === undefined || second === undefined) return false
        first.end = second.end
        return true
      })
    await forged(forge, async () => expect(await restore(into)).toMatch(/BadImage|overlapping/))
    await nothingIsLeft(into)
  })

  it('what is forged in the copy stays out of the generation', async () => {
    const into = await understudy()
    const before = await readFile(join(images(), 'inventory.img'))
    const truncated = late(async dir => {
      await writeFile(join(dir, 'inventory.img'), '')
    })
    expect(await restore(into, truncated)).not.toBe('restored')
    expect(await readFile(join(images(), 'inventory.img'))).toEqual(before)
  })

  it('a namespace of its own, with the mounts that the images say', async () => {
    const into = await understudy()
    const forge = (dir: string) =>
      editImage(dir, 'inventory.img', 'inventory', inventoryEntry, entry => {
        if (entry.rootIds !== undefined) entry.rootIds.mntNsId = 99
        return true
      })
    await forged(forge, async () => expect(await restore(into)).toBe('CredentialsExceed'))
    await nothingIsLeft(into)
  })

  const rename = (from: string, to: string) => (dir: string) =>
    editImage(dir, 'files.img', 'files', namedFile, ({ reg }) => {
      if (reg === undefined || textOf(reg.name) !== from) return false
      reg.name = Buffer.from(to)
      return true
    })

  /** A file of /proc with its real size and mode, which CRIU compares. */
  const ofProc = (name: string, mode: number) => (dir: string) =>
    editImage(dir, 'files.img', 'files', namedFile, ({ reg }) => {
      if (reg === undefined || textOf(reg.name) !== '/tmp/log') return false
      Object.assign(reg, { name: Buffer.from(name), mode: 0o100000 | mode, size: 0n, flags: 0 })
      return true
    })

  it.each([
    ['/proc/1/mem', 0o600],
    ['/./proc/1/mem', 0o600],
    ['x/proc/1/mem', 0o600],
    ['/proc/kallsyms', 0o444],
    ['/proc/meminfo', 0o444],
  ] as const)('a file of /proc: %s', async (name, mode) => {
    const into = await understudy()
    await forged(ofProc(name, mode), async () => expect(await restore(into)).toBe('CredentialsExceed'))
    // If CRIU sees the forgery, the driver kills the processes that opened it.
    expect(await restore(into, late(ofProc(name, mode)))).toBe('CredentialsExceed')
    await nothingIsLeft(into)
    expect(await restore(into, late(ofProc(name, mode)), 'Always')).toBe('CredentialsExceed')
    await nothingIsLeft(into)
  })

  it('a file by a way around, before the restore', async () => {
    const into = await understudy()
    await forged(rename('/tmp/log', '/proc/2/fd/200/../x'), async () =>
      expect(await restore(into)).toBe('CredentialsExceed'),
    )
  })

  describe('D10.layer-rights', () => {
    /** Changes the layer while `work` runs. */
    const withLayer = async (members: readonly Member[], work: () => Promise<void>) => {
      const directory = join(saved.dir, 'containers', 'app')
      const [archive, list] = [join(directory, 'layer.tar'), join(directory, 'layer.list')]
      const before = [await readFile(archive), await readFile(list)] as const
      const forgery = await forgeArchive(
        await mkdtemp(join(node.directory, 'forged-')),
        members,
        members.map(({ name }) => `f- ${name}`),
      )
      const own = (await readFile(forgery.list)).toString('latin1') + before[1].toString('latin1')
      await writeFile(
        archive,
        Buffer.concat([(await readFile(forgery.archive)).subarray(0, -1024), before[0]]),
      )
      await writeFile(list, own, 'latin1')
      try {
        await work()
      } finally {
        await writeFile(archive, before[0])
        await writeFile(list, before[1])
      }
    }
    const members: readonly Member[] = [
      { name: 'shell', mode: 0o4755, uid: 0, gid: 0, content: '#!' },
      { name: 'disk', type: 'block-device', mode: 0o666, devmajor: 7, devminor: 0 },
    ]
    const modes = async (of: TestContainer) => {
      const root = `/proc/${of.init.pid}/root`
      const look = (name: string) =>
        stat(join(root, name)).then(
          ({ mode }) => mode.toString(8),
          () => 'absent',
        )
      return [await look('shell'), await look('disk')]
    }

    it('a layer brings a container of a user no set-id program of root and no device, and says so', async () => {
      const said: object[] = []
      const driver = createMemoryDriver({
        ...node.dependencies,
        log: { warn: fields => void said.push(fields) },
      })
      const into = await understudy()
      await withLayer(members, async () => expect(await restore(into, driver)).toBe('restored'))
      expect(await modes(into)).toEqual(['100755', 'absent'])
      expect(said).toEqual([
        expect.objectContaining({
          leftOut: expect.arrayContaining(['shell: without its set-user-ID bit', 'disk: without a device']),
        }),
      ])
    })

    it('and one of root what it could have made itself', async () => {
      const into = await testContainers.start({ role: 'understudy', command: holdCommand })
      await withLayer(members, async () => expect(await restore(into)).toBe('restored'))
      expect(await modes(into)).toEqual(['104755', '60666'])
    })

    it.each([
      ['a program of root', 0o104755],
      ['a device', 0o060666],
    ])('a deleted file that would be made again is none of those: %s', async (_, mode) => {
      const into = await understudy()
      const name = 'ghost-file-99.img'
      const forge = (dir: string) =>
        writeFile(join(dir, name), joinEntries('ghost', [encode(ghostFileEntry, ghost(mode))]))
      try {
        await forged(forge, async () => expect(await restore(into)).toBe('CredentialsExceed'))
      } finally {
        await rm(join(images(), name))
      }
    })
  })

  it('entries of a kind that the container could not make', async () => {
    const into = await understudy()
    const forge = async (dir: string) => {
      const entries = splitEntries('files', 'files.img', await readImageBytes(dir, 'files.img'))
      // type = PACKETSK, id = 9999.
      const packet = Buffer.from([0x08, 10, 0x10, 0x8f, 0x4e])
      await writeFile(join(dir, 'files.img'), joinEntries('files', [...entries, packet]))
    }
    await forged(forge, async () => expect(await restore(into)).toBe('CredentialsExceed'))
  })

  it('nothing of memory is readable by others', async () => {
    const modes = new Set<string>()
    for (const name of await readdir(saved.dir, { recursive: true })) {
      const { mode } = await stat(join(saved.dir, name))
      if ((mode & 0o077) !== 0) modes.add(`${name} ${(mode & 0o777).toString(8)}`)
    }
    expect([...modes]).toEqual([])
  })
})
