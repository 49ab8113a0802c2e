/** `install.yaml`: all objects of an installation in one file, whose images are named by digest. */
import { noRegistry } from './registry.ts'

/**
 * The first document of a file whose registry is missing. No YAML parser accepts an alias without its anchor, so
 * `kubectl apply` refuses the whole file before it sends anything, and its message quotes the name of the alias.
 */
const missing = 'The-registry-is-missing--put-yours-in--docs-install-md-says-how'

const guard = (
  version: string,
): string => `# Understudy ${version}, not bound to a registry: copy the images of this release to yours, then
#   sed '1,/^---$/d; s#${noRegistry}/#registry.example/understudy/#' install.yaml > my-install.yaml
# The next line makes every tool refuse this file until then.
registry: *${missing}
---
`

/**
 * Returns the manifest of a release.
 *
 * @param rendered the objects, with images as deploy/ names them: `understudy.invalid/NAME:VERSION`
 * @param digests by the name of the image
 * @param registry undefined: the file is refused until its user fills one in
 * @throws if the objects name an image that is not among the digests
 */
export function installManifest(
  rendered: string,
  version: string,
  digests: Readonly<Record<string, string>>,
  registry?: string,
): string {
  const bound = rendered.replaceAll(
    /understudy\.invalid\/([a-z0-9-]+)(?:[:@][\w.:-]+)?/g,
    (reference, name: string) => {
      const digest = digests[name]
      if (digest === undefined || reference !== `${noRegistry}/${name}:${version}`)
        throw new Error(`install.yaml names ${reference}, which is not an image of release ${version}`)
      return `${registry ?? noRegistry}/${name}@${digest}`
    },
  )
  return registry === undefined ? `${guard(version)}${bound}` : `# Understudy ${version}\n${bound}`
}

/** Returns the manifest with a registry: what the command in its head does. */
export function withRegistry(manifest: string, registry: string): string {
  const start = manifest.startsWith('---\n') ? 0 : manifest.indexOf('\n---\n') + 1
  return manifest.slice(start + '---\n'.length).replaceAll(`${noRegistry}/`, `${registry}/`)
}

/** Returns the image references in a manifest: in fields, and in arguments of the operator. */
export function imagesOf(manifest: string): readonly string[] {
  const found = [...manifest.matchAll(/(?:^\s*(?:- )?image: |--[a-z]+-image=)["']?([^\s"']+)/gm)]
  return [...new Set(found.map(([, image = '']) => image))].sort()
}
