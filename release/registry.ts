/** Where the images of a release are published. */

/** The host in manifests that name no registry: it cannot exist (RFC 2606), so no stranger can serve images under it. */
export const noRegistry = 'understudy.invalid'

/**
 * Returns a registry with its path, such as `registry.example/team/understudy`.
 * @throws with the cure, for anything that cannot be the beginning of an image reference
 */
export function parseRegistry(text: string): string {
  const registry = text.replace(/\/+$/, '')
  const [host = '', ...path] = registry.split('/')
  const isHost = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d+)?$/i.test(host)
  // Without a dot or a port, container runtimes would take the host for an organisation of a public registry.
  const isNamed = host === 'localhost' || host.includes('.') || host.includes(':')
  const isPath = path.every(part => /^[a-z0-9]+([._-]+[a-z0-9]+)*$/.test(part))
  if (!isHost || !isNamed || !isPath)
    throw new Error(
      `not a registry: ${JSON.stringify(text)}: give a host with a dot or a port and a path in small letters, without https:// and without a tag, such as registry.example/team/understudy`,
    )
  if (host.endsWith('.invalid'))
    throw new Error(`the registry ${host} cannot exist: name the one that your nodes pull from`)
  return registry
}
