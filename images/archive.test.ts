import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { chmod, lstat, mkdtemp, readdir, readFile, readlink, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { textFile } from '../build/entry.ts'
import { run } from '../build/run.ts'
import { type ImageSource, packImage } from './archive.ts'
import { unpackImage } from './unpack.ts'

let scratch = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-archive-'))
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')

/** A source with every kind of entry; the file on disk is included by path. */
async function sample(name: string): Promise<ImageSource> {
  const file = join(scratch, name)
  await writeFile(file, 'x'.repeat(100_000))
  await chmod(file, 0o600)
  return {
    ref: 'understudy/sample:1',
    layers: [
      { files: [{ type: 'file', path: '/bin/tool', mode: 0o755, content: { source: file } }] },
      {
        files: [
          textFile('/etc/a', 'a\n'),
          { type: 'symlink', path: '/etc/b', target: 'a' },
          { type: 'directory', path: '/data', mode: 0o700, uid: 7, gid: 8 },
          { type: 'file', path: `/${'long/'.repeat(40)}name`, mode: 0o644, content: new Uint8Array([1]) },
        ],
      },
    ],
    config: { entrypoint: ['/bin/tool'], cmd: ['x'], user: '7:8', labels: { b: '2', a: '1' } },
  }
}

/** Returns the same source with everything in another order. */
function shuffled(source: ImageSource): ImageSource {
  return {
    ...source,
    layers: source.layers.map(layer => ({ files: layer.files.toReversed() })),
    config: { ...source.config, labels: { a: '1', b: '2' } },
  }
}

describe('packImage', () => {
  test('the same content gives the same bytes, whatever its order, its file times and its cache', async () => {
    const first = await packImage(join(scratch, 'first.tar'), await sample('one'), {
      cacheDir: join(scratch, 'cache-one'),
    })
    const later = await sample('two')
    await utimes(join(scratch, 'two'), new Date(1e12), new Date(1e12))
    const second = await packImage(join(scratch, 'second.tar'), shuffled(later), {
      cacheDir: join(scratch, 'cache-two'),
    })
    expect(second.digest).toBe(first.digest)
    expect(sha256(second.path)).toBe(sha256(first.path))
  })

  test('other content gives another digest', async () => {
    const source = await sample('three')
    const options = { cacheDir: join(scratch, 'cache') }
    const one = await packImage(join(scratch, 'a.tar'), source, options)
    await writeFile(join(scratch, 'three'), 'y'.repeat(100_000))
    const two = await packImage(join(scratch, 'b.tar'), source, options)
    const three = await packImage(
      join(scratch, 'c.tar'),
      { ...source, config: { ...source.config, user: '0' } },
      options,
    )
    expect(new Set([one.digest, two.digest, three.digest]).size).toBe(3)
  })

  test('what is packed comes out, with digests that hold', async () => {
    const packed = await packImage(join(scratch, 'out.tar'), await sample('four'), {
      cacheDir: join(scratch, 'cache'),
    })
    const root = join(scratch, 'root')
    const { ref, config } = await unpackImage(packed.path, root)
    expect(ref).toBe('docker.io/understudy/sample:1')
    expect(packed.ref).toBe(ref)
    expect(config).toMatchObject({ User: '7:8', Entrypoint: ['/bin/tool'], Cmd: ['x'], WorkingDir: '/' })
    expect((await readFile(join(root, 'bin/tool'))).length).toBe(100_000)
    expect((await lstat(join(root, 'bin/tool'))).mode & 0o777).toBe(0o755)
    expect(await readlink(join(root, 'etc/b'))).toBe('a')
    expect((await lstat(join(root, 'data'))).mode & 0o777).toBe(0o700)
    expect((await lstat(join(root, 'long/'.repeat(40), 'name'))).size).toBe(1)
    expect((await lstat(packed.path)).size).toBe(packed.size)
  })

  test('what `docker load` reads leads to the whole image: its configuration, and each layer with the content that the configuration names', async () => {
    const packed = await packImage(join(scratch, 'docker.tar'), await sample('six'), {
      cacheDir: join(scratch, 'cache'),
    })
    const unpacked = await mkdtemp(join(scratch, 'docker-'))
    await run('tar', ['-xf', packed.path, '-C', unpacked])
    const parse = async (path: string): Promise<unknown> =>
      JSON.parse(await readFile(join(unpacked, path), 'utf8'))
    const images = (await parse('manifest.json')) as {
      Config: string
      RepoTags: string[]
      Layers: string[]
    }[]
    expect(images).toHaveLength(1)
    const [image] = images
    if (image === undefined) throw new Error('no image')
    expect(image.RepoTags).toEqual(['docker.io/understudy/sample:1'])
    const { rootfs, ...config } = (await parse(image.Config)) as {
      rootfs: { type: string; diff_ids: string[] }
      os: string
      architecture: string
    }
    expect(config).toMatchObject({ os: 'linux', architecture: expect.stringMatching(/^(amd64|arm64)$/) })
    const contents = image.Layers.map(layer => gunzipSync(readFileSync(join(unpacked, layer))))
    expect(rootfs).toEqual({
      type: 'layers',
      diff_ids: contents.map(content => `sha256:${createHash('sha256').update(content).digest('hex')}`),
    })
    // The same blobs as for containerd, and no others.
    const blobs = await readdir(join(unpacked, 'blobs/sha256'))
    const named = [image.Config, ...image.Layers].map(path => path.replace('blobs/sha256/', ''))
    expect(blobs.sort()).toEqual([...named, packed.digest.replace('sha256:', '')].sort())
    for (const blob of blobs) expect(sha256(join(unpacked, 'blobs/sha256', blob))).toBe(blob)
  })

  test('a source that cannot be read fails and leaves nothing behind', async () => {
    const cacheDir = join(scratch, 'cache-broken')
    const broken: ImageSource = {
      ref: 'x:1',
      layers: [
        { files: [{ type: 'file', path: '/f', mode: 0o644, content: { source: join(scratch, 'absent') } }] },
      ],
      config: {},
    }
    await expect(packImage(join(scratch, 'broken/x.tar'), broken, { cacheDir })).rejects.toThrow('ENOENT')
    expect(await readdir(join(scratch, 'broken'))).toEqual([])
  })

  test('an aborted build fails with the reason and leaves nothing behind', async () => {
    const aborted = AbortSignal.abort(new Error('enough'))
    const cacheDir = join(scratch, 'cache-aborted')
    const source = await sample('five')
    await expect(
      packImage(join(scratch, 'aborted/x.tar'), source, { cacheDir, signal: aborted }),
    ).rejects.toThrow()
    expect(await readdir(join(scratch, 'aborted'))).toEqual([])
    expect(await readdir(join(cacheDir, 'layers'))).toEqual([])
  })
})
