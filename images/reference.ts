/**
 * Returns the fully qualified image reference, as containerd and the kubelet normalise the one in a pod: the default
 * host is Docker Hub, the default organisation is `library`, the default tag is `latest`.
 *
 * `nginx:1.14.2` -> `docker.io/library/nginx:1.14.2`; `team/app:1` -> `docker.io/team/app:1`.
 * @throws for references with a digest or outside the grammar: an archive names an image only by tag
 */
export function normaliseReference(reference: string): string {
  const slash = reference.indexOf('/')
  const first = slash < 0 ? '' : reference.slice(0, slash)
  const hasHost = first === 'localhost' || first.includes('.') || first.includes(':')
  const host = hasHost ? first : 'docker.io'
  const rest = hasHost ? reference.slice(slash + 1) : reference
  const path = host === 'docker.io' && !rest.includes('/') ? `library/${rest}` : rest
  const match = /^([a-z0-9]+(?:[._/-]+[a-z0-9]+)*)(?::([\w][\w.-]{0,127}))?$/.exec(path)
  if (match === null) throw new Error(`not an image reference with a tag: ${reference}`)
  return `${host}/${match[1]}:${match[2] ?? 'latest'}`
}

/** Returns the tag of a normalised reference. */
export function tagOf(normalised: string): string {
  return normalised.slice(normalised.lastIndexOf(':') + 1)
}
