import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cachedDirectory, cacheRoot, keyOf } from '../../build/cache.ts'
import { type DebianOptions, lockedPackages, type PackageTree } from '../../build/debian.ts'
import { run } from '../../build/run.ts'
import { mergedUsr, takeTree, users, withLibraries } from '../../build/tree.ts'
import { labels, type Recipe } from './recipe.ts'

const source = fileURLToPath(new URL('../zoo/java/Counter.java', import.meta.url))
const home = '/usr/lib/jvm/java-21-openjdk-amd64'

/** A server on a JVM that has only the modules it needs, and those that run a program from its source. */
export const zooJava: Recipe = async options => {
  const tree = await lockedPackages('zoo-java', options)
  const runtime = { root: await linkedRuntime(tree, options), packages: tree.packages }
  const files = await takeTree(runtime, '/java')
  const isProgram = (path: string) => path.endsWith('.so') || path === '/java/bin/java'
  const programs = files.flatMap(({ path }) => (isProgram(path) ? [path] : []))
  return {
    ref: `understudy.invalid/zoo-java:${options.version}`,
    layers: [
      {
        files: [
          ...mergedUsr,
          ...(await withLibraries(
            tree,
            programs.map(path => ({ path, source: join(runtime.root, path) })),
            new Set(programs.map(path => basename(path))),
          )),
          ...files.filter(({ path }) => !isProgram(path)),
          ...(await takeTree(runtime, '/zoo')),
          { type: 'directory', path: '/tmp', mode: 0o1777 },
          ...users('zoo', 1000),
        ],
      },
    ],
    config: {
      entrypoint: ['/java/bin/java', '-Xmx64m', '-XX:+UseSerialGC', '-cp', '/zoo', 'Counter'],
      env: ['PATH=/java/bin'],
      exposedPorts: ['8080/tcp'],
      labels: labels('A server on a JVM with its state in memory'),
    },
  }
}

/**
 * Compiles the program and links a runtime for it, with the JDK of the tree. The JDK needs the C library of its own
 * release, so it runs in a root of its own, into which the tree's /usr is bound. In a user namespace any user may do
 * that.
 */
async function linkedRuntime({ root, packages }: PackageTree, options: DebianOptions): Promise<string> {
  const { signal, cacheDir = cacheRoot(), progress } = options
  const key = keyOf({ source: await readFile(source, 'utf8'), packages, script, recipe: 1 })
  const target = join(cacheDir, 'native', `java-${key}`)
  await cachedDirectory(target, async scratch => {
    progress?.('compile Counter.java, link a Java runtime')
    await run('unshare', ['--map-root-user', '--mount', 'sh', '-ec', script], {
      env: { TREE: root, WORK: scratch, SOURCE: source },
      ...(signal && { signal }),
    })
    const left = (await readdir(scratch)).sort()
    if (left.join() !== 'java,zoo') throw new Error(`the Java runtime has ${left.join(', ')}`)
  })
  return target
}

const script = `
cd "$WORK"
mkdir etc usr zoo proc
ln -s usr/lib lib; ln -s usr/lib64 lib64
cp "$SOURCE" zoo/
mount --bind "$TREE/usr" usr; mount --bind "$TREE/etc" etc
# Its launcher finds its home by /proc/self/exe.
mount --rbind /proc proc
inside() { chroot . ${home}/bin/"$@"; }
inside javac -J-Xint -J-XX:+UseSerialGC -d /zoo /zoo/Counter.java
inside jlink -J-XX:+UseSerialGC --add-modules java.base,jdk.compiler,jdk.httpserver --strip-java-debug-attributes \\
  --no-header-files --no-man-pages --output /java
umount --lazy etc usr proc
rmdir etc usr proc
rm lib lib64 zoo/Counter.java
`
