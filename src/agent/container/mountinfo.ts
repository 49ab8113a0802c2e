/** One line of /proc/PID/mountinfo. Paths are unescaped. */
export interface Mount {
  /** As in /proc/PID/fdinfo (`mnt_id`). */
  readonly id: string
  /** major:minor of the filesystem. */
  readonly device: string
  /** The directory of that filesystem that is mounted. */
  readonly root: string
  readonly mountPoint: string
  /** Applies to this mount; the filesystem may be writable elsewhere. */
  readonly readOnly: boolean
  readonly type: string
  readonly source: string
  readonly superOptions: ReadonlyMap<string, string>
}

/** Parses mountinfo. Skips malformed lines, which the kernel never writes. */
export function parseMountinfo(text: string): Mount[] {
  return text.split('\n').flatMap(line => {
    const [before, after] = line.split(' - ')
    const [id, , device, root, mountPoint, flags] = before?.split(' ') ?? []
    const [type, source, options] = after?.split(' ') ?? []
    if (id === undefined || device === undefined || root === undefined || mountPoint === undefined) return []
    if (type === undefined || source === undefined) return []
    const superOptions = (options ?? '').split(',').map(option => {
      const at = option.indexOf('=')
      return at < 0
        ? ([option, ''] as const)
        : ([option.slice(0, at), unescaped(option.slice(at + 1))] as const)
    })
    return [
      {
        id,
        device,
        root: unescaped(root),
        mountPoint: unescaped(mountPoint),
        readOnly: flags?.split(',').includes('ro') === true,
        type,
        source: unescaped(source),
        superOptions: new Map(superOptions),
      },
    ]
  })
}

/** The kernel writes space, tab, newline and backslash as three octal digits. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}

/**
 * Returns `path` relative to `directory`, without a leading slash; undefined if it is outside. `/` contains every path.
 */
export function below(directory: string, path: string): string | undefined {
  if (path === directory) return ''
  const prefix = directory.endsWith('/') ? directory : `${directory}/`
  return path.startsWith(prefix) ? path.slice(prefix.length) : undefined
}

/**
 * Returns the path on the host at which that directory of a filesystem is visible; undefined if no mount of the host
 * shows it. The first such mount counts, as it is the host's own.
 */
export function hostPathOf(hostMounts: readonly Mount[], device: string, path: string): string | undefined {
  for (const mount of hostMounts) {
    if (mount.device !== device) continue
    const rest = below(mount.root, path)
    if (rest !== undefined)
      return rest === '' ? mount.mountPoint : `${mount.mountPoint.replace(/\/$/, '')}/${rest}`
  }
  return undefined
}

const local = new Set([
  ...[
    'overlay',
    'tmpfs',
    'devtmpfs',
    'devpts',
    'ramfs',
    'mqueue',
    'ext2',
    'ext3',
    'ext4',
    'xfs',
    'btrfs',
    'f2fs',
  ],
  ...['zfs', 'bcachefs', 'squashfs', 'erofs', 'vfat', 'iso9660'],
])

/**
 * True if no server is behind filesystems of this type. Behind others, a lookup takes as long as a server, or a tenant,
 * likes.
 */
export const answersByItself = (type: string): boolean => local.has(type)
