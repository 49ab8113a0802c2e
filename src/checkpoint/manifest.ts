/** The description of one generation: a JSON file beside its data. Manifests also come from other nodes. */
import { formatSlotKey, type SlotKey, slotFieldsOf, slotKeyIn } from '../api/slot-key.ts'
import { CheckpointError } from './errors.ts'
import { type Credentials, capabilitySets, type Ids, seccompModes } from './images/credentials.ts'

export interface ContainerImage {
  readonly name: string
  /** From the container's status: the image that really runs, whatever the tag said. */
  readonly imageId: string
  /** Pid of the root of the dumped tree, in the pid namespace of the dump. */
  readonly rootPid: number
  /** The root's descriptors 0, 1 and 2 at the dump: `pipe:[123]`, or a path. */
  readonly stdio: Readonly<Record<'0' | '1' | '2', string>>
  /** One for each thread. */
  readonly credentials: readonly Credentials[]
  readonly memoryBytes: number
  /** Time during which CRIU kept this container's tasks stopped. */
  readonly frozenMicroseconds: number
}

export interface GenerationFile {
  /** Below the directory of the generation, with `/` between its parts. */
  readonly path: string
  readonly size: number
  /** Lower-case hex. */
  readonly sha256: string
  /** The digest is that of the digests of its pages. Agents of the version before cannot check such a file. */
  readonly byPage?: true
}

export interface Manifest {
  readonly version: 1
  readonly slot: SlotKey
  readonly epoch: number
  /** Counts from 1 within each incarnation of the slot. */
  readonly generation: number
  readonly source: {
    readonly pod: string
    readonly podUid: string
    readonly node: string
    /** The pod's address, to which sockets of its memory may be bound. */
    readonly ip?: string
  }
  /** RFC 3339, by the source's clock: when the pod was stopped. */
  readonly takenAt: string
  /** Time during which the whole pod was stopped. */
  readonly frozenSeconds: number
  /** Time between the stop of the first process and the stop of the last. */
  readonly skewSeconds: number
  readonly criu: string
  readonly kernel: string
  readonly architecture: string
  /** CPU features that its processes may have detected; absent: an agent of an earlier version made the generation. */
  readonly cpuFeatures?: readonly string[]
  readonly restoreHash: string
  /** The primary stayed stopped after this generation, for a successor. */
  readonly final?: true
  readonly containers: readonly ContainerImage[]
  /** emptyDirs whose content is in the generation. */
  readonly volumes: readonly string[]
  /** Every file but the manifest itself, sorted by path. */
  readonly files: readonly GenerationFile[]
  /** Sum of the sizes of all files. */
  readonly bytes: number
  /** The source's signature of this manifest; absent: an agent of an earlier version made the generation. */
  readonly signed?: Signed
}

/** See `signerOf`. */
export interface Signed {
  /** The manifest as its source wrote it, without `signed`. */
  readonly text: string
  /** Public key of the source: SubjectPublicKeyInfo (DER), base64. */
  readonly key: string
  /** The signature, base64. */
  readonly value: string
}

export const manifestName = 'manifest.json'

/** The store's own note beside a manifest: when the generation was complete on this node. */
export const arrivalName = 'arrival.json'

/** The digests of the pages of all files that have them, in the order of the manifest. */
export const pageDigestsName = 'page-digests'

const ownNames: ReadonlySet<string> = new Set([manifestName, arrivalName, pageDigestsName])

type Version = Pick<Manifest, 'epoch' | 'generation'>

/**
 * Orders generations of one incarnation, newest first. A later epoch counts more: the primary of an earlier epoch may have
 * kept running by itself.
 */
export const newestFirst = (a: Version, b: Version) => b.epoch - a.epoch || b.generation - a.generation

/** True if the first one comes before the other one in `newestFirst`; anything is newer than nothing. */
export const isNewer = (a: Version, than: Version | undefined): boolean =>
  than === undefined || newestFirst(a, than) < 0

/** Paths of a generation: relative, plain, and other than the store's own files. */
const plainPath = /^(?!\/)(?!.*\/\/)(?!.*\/$)[^\0\\]{1,1024}$/

export function isGenerationPath(path: string): boolean {
  const parts = path.split('/')
  if (!plainPath.test(path) || ownNames.has(parts[0] ?? '')) return false
  return parts.every(part => part !== '.' && part !== '..' && part.length <= 255)
}

/**
 * Returns the key as text: see `formatSlotKey`.
 * @throws CheckpointError BadManifest when Kubernetes does not allow a part of the key.
 */
export function slotName(key: SlotKey): string {
  const name = formatSlotKey(key)
  if (name === undefined)
    throw new CheckpointError('BadManifest', `${JSON.stringify(key)} is not a name of a slot`)
  return name
}

export const formatManifest = (manifest: Manifest): string => `${JSON.stringify(fieldsOf(manifest))}\n`

/** Returns the manifest as agents of the version before read it, too. */
export const fieldsOf = (manifest: Manifest) => ({ ...manifest, slot: slotFieldsOf(manifest.slot) })

/**
 * Reads a manifest, also one of the version before, and drops unknown fields.
 * @throws CheckpointError BadManifest, with the field and the value that was expected.
 */
export function parseManifest(text: string): Manifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new CheckpointError('BadManifest', 'the manifest is not JSON', error)
  }
  const root = record('', value)
  if (root.value['version'] !== 1) throw wrong('version', '1')
  const source = root.record('source')
  const manifest: Manifest = {
    version: 1,
    slot: slotAt(root.record('slot')),
    epoch: root.count('epoch'),
    generation: root.count('generation'),
    source: {
      pod: source.text('pod'),
      podUid: source.text('podUid'),
      node: source.text('node'),
      ...(source.value['ip'] === undefined ? {} : { ip: source.text('ip') }),
    },
    takenAt: root.text('takenAt'),
    frozenSeconds: root.number('frozenSeconds'),
    skewSeconds: root.number('skewSeconds'),
    criu: root.text('criu'),
    kernel: root.text('kernel'),
    architecture: root.text('architecture'),
    ...(root.value['cpuFeatures'] === undefined ? {} : { cpuFeatures: root.list('cpuFeatures', textAt) }),
    restoreHash: root.text('restoreHash'),
    ...(root.value['final'] === true && { final: true }),
    containers: root.list('containers', containerImage),
    volumes: root.list('volumes', textAt),
    files: root.list('files', generationFile),
    bytes: root.count('bytes'),
    ...(root.value['signed'] === undefined ? {} : { signed: signedAt(root.record('signed')) }),
  }
  if (manifest.generation === 0) throw wrong('generation', 'at least 1')
  if (Number.isNaN(Date.parse(manifest.takenAt))) throw wrong('takenAt', 'a time')
  checkFiles(manifest)
  return manifest
}

function slotAt({ value }: Reader): SlotKey {
  const key = slotKeyIn(value)
  if (key === undefined) throw wrong('slot', 'a name of a slot')
  return key
}

const signedAt = (fields: Reader): Signed => ({
  text: fields.text('text'),
  key: fields.text('key'),
  value: fields.text('value'),
})

function checkFiles({ files, bytes }: Manifest) {
  const paths = new Set(files.map(file => file.path))
  if (paths.size !== files.length) throw wrong('files', 'files with different paths')
  for (const path of paths)
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1))
      if (paths.has(path.slice(0, at))) throw wrong('files', 'files that are not directories of others')
  if (files.reduce((sum, file) => sum + file.size, 0) !== bytes) throw wrong('bytes', 'the sum of all sizes')
}

function generationFile(field: string, value: unknown): GenerationFile {
  const file = record(field, value)
  const path = file.text('path')
  const sha256 = file.text('sha256')
  if (!isGenerationPath(path)) throw wrong(`${field}.path`, 'a plain path below the generation')
  if (!/^[0-9a-f]{64}$/.test(sha256)) throw wrong(`${field}.sha256`, '64 lower-case hex digits')
  return { path, size: file.count('size'), sha256, ...(file.value['byPage'] === true && { byPage: true }) }
}

function containerImage(field: string, value: unknown): ContainerImage {
  const container = record(field, value)
  const stdio = container.record('stdio')
  return {
    name: container.text('name'),
    imageId: container.text('imageId'),
    rootPid: container.count('rootPid'),
    stdio: { 0: stdio.text('0'), 1: stdio.text('1'), 2: stdio.text('2') },
    credentials: container.list('credentials', credentialsAt),
    memoryBytes: container.count('memoryBytes'),
    frozenMicroseconds: container.number('frozenMicroseconds'),
  }
}

function credentialsAt(field: string, value: unknown): Credentials {
  const fields = record(field, value)
  const capabilities = fields.record('capabilities')
  const sets = capabilitySets.map(set => {
    const word = capabilities.text(set)
    if (!/^(?:[0-9a-f]{8}){2,}$/.test(word)) throw wrong(`${field}.capabilities.${set}`, '16 hex digits')
    return [set, word] as const
  })
  const seccomp = seccompModes.find(mode => mode === fields.value['seccomp'])
  if (seccomp === undefined) throw wrong(`${field}.seccomp`, `one of ${seccompModes.join(', ')}`)
  return {
    pid: fields.count('pid'),
    tid: fields.count('tid'),
    uids: ids(fields.record('uids')),
    gids: ids(fields.record('gids')),
    groups: fields.list('groups', countAt),
    capabilities: Object.fromEntries(sets) as unknown as Credentials['capabilities'],
    secureBits: fields.count('secureBits'),
    noNewPrivileges: fields.flag('noNewPrivileges'),
    seccomp,
    ...(fields.value['dumpable'] === undefined ? {} : { dumpable: fields.count('dumpable') }),
    ...(fields.value['lsmProfile'] === undefined ? {} : { lsmProfile: fields.text('lsmProfile') }),
  }
}

const ids = (fields: Reader): Ids => ({
  real: fields.count('real'),
  effective: fields.count('effective'),
  saved: fields.count('saved'),
  filesystem: fields.count('filesystem'),
})

const wrong = (field: string, expected: string) =>
  new CheckpointError('BadManifest', `${field === '' ? 'the manifest' : field} is not ${expected}`)

function textAt(field: string, value: unknown): string {
  if (typeof value !== 'string') throw wrong(field, 'a text')
  return value
}

function countAt(field: string, value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw wrong(field, 'a whole number from 0')
  return value as number
}

interface Reader {
  readonly value: Readonly<Record<string, unknown>>
  text(name: string): string
  count(name: string): number
  number(name: string): number
  flag(name: string): boolean
  record(name: string): Reader
  list<T>(name: string, item: (field: string, value: unknown) => T): T[]
}

/** Returns a reader for the fields of an object. Each of its methods throws if the field is missing. */
function record(field: string, value: unknown): Reader {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(field, 'an object')
  const fields = value as Readonly<Record<string, unknown>>
  const path = (name: string) => (field === '' ? name : `${field}.${name}`)
  return {
    value: fields,
    text: name => textAt(path(name), fields[name]),
    count: name => countAt(path(name), fields[name]),
    number: name => {
      const number = fields[name]
      if (typeof number !== 'number' || !Number.isFinite(number) || number < 0)
        throw wrong(path(name), 'a number from 0')
      return number
    },
    flag: name => {
      const flag = fields[name]
      if (typeof flag !== 'boolean') throw wrong(path(name), 'true or false')
      return flag
    },
    record: name => record(path(name), fields[name]),
    list: (name, item) => {
      const items = fields[name]
      if (!Array.isArray(items)) throw wrong(path(name), 'a list')
      return items.map((it, index) => item(`${path(name)}[${index}]`, it))
    },
  }
}
