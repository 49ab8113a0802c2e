/** Debian release of everything in the images, unless a set gives a reason for another. */
export const SUITE = 'trixie'

/** `forky` is Debian's testing release: no security archive, and its packages change. */
export type Suite = 'trixie' | 'forky'

/** Packages that are unpacked into one tree. */
export interface PackageSet {
  readonly suite: Suite
  readonly names: readonly string[]
  /** True to include the packages that they depend on. */
  readonly dependencies: boolean
}

/**
 * The packages that the images are built from. `debian.lock.json` names every file of these; `npm run lock-packages`
 * writes it.
 */
export const packageSets = {
  /** From the testing release: no CRIU before 4.2 can dump TCP sockets on kernels since 6.15. */
  criu: { suite: 'forky', names: ['criu', 'tar'], dependencies: true },
  /** SHA-256 for the waker, see docs/adr/0120-sha-256-of-libmd.md. */
  libmd: { suite: SUITE, names: ['libmd-dev'], dependencies: false },
  musl: { suite: SUITE, names: ['musl', 'musl-dev'], dependencies: false },
  'musl-linux': { suite: SUITE, names: ['linux-libc-dev', 'musl', 'musl-dev'], dependencies: false },
  nginx: { suite: SUITE, names: ['busybox-static', 'nginx'], dependencies: true },
  node: { suite: SUITE, names: ['libc6', 'libgcc-s1', 'libstdc++6'], dependencies: true },
  redis: { suite: SUITE, names: ['busybox-static', 'redis-server', 'redis-tools'], dependencies: true },
  zoo: {
    suite: SUITE,
    names: [
      ...['busybox-static', 'libgcc-s1', 'libpython3-stdlib', 'libstdc++6', 'python3-minimal'],
      ...['libnginx-mod-http-lua', 'nginx'],
    ],
    dependencies: true,
  },
  'zoo-java': { suite: SUITE, names: ['openjdk-21-jdk-headless'], dependencies: true },
} as const satisfies Readonly<Record<string, PackageSet>>

export type SetName = keyof typeof packageSets
export const setNames = Object.keys(packageSets) as readonly SetName[]
