/**
 * The content of a support bundle. It keeps named fields only, so that a new field stays in the cluster. Texts lose
 * everything that looks like a credential.
 */

/** `true`: a string, number or boolean. An array with one shape: a list. An object: these fields. */
export type Shape = true | readonly [Shape] | { readonly [field: string]: Shape }

const mostText = 2_000
const mostEntries = 2_000
const redacted = '[redacted]'

/** Returns the part of a value that has this shape; undefined if nothing of it has. */
export function kept(value: unknown, shape: Shape): unknown {
  if (shape === true) {
    if (typeof value === 'string') return scrubbed(value)
    return typeof value === 'number' || typeof value === 'boolean' ? value : undefined
  }
  if (isList(shape)) {
    if (!Array.isArray(value)) return undefined
    return value.slice(0, mostEntries).flatMap(each => kept(each, shape[0]) ?? [])
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const fields = value as Readonly<Record<string, unknown>>
  const entries = Object.entries(shape).flatMap(([field, inner]) => {
    const part = Object.hasOwn(fields, field) ? kept(fields[field], inner) : undefined
    return part === undefined ? [] : [[field, part] as const]
  })
  return Object.fromEntries(entries)
}

const isList = (shape: Shape): shape is readonly [Shape] => Array.isArray(shape)

const credentials: readonly RegExp[] = [
  // A JSON Web Token, and what follows "Bearer" or "Basic".
  /\beyJ[\w-]+\.[\w-]+(\.[\w-]+)?/g,
  /(?<=\b(?:bearer|basic)\s+)\S+/gi,
  // The user of a URL.
  /(?<=:\/\/)[^\s/@]+(?=@)/g,
  // `password=...`, `"token": "..."`, `API_KEY: ...`
  /(?<=[\w-]*(?:passw(?:or)?d|passphrase|secret|token|api[-_]?key|credential|authori[sz]ation)[\w-]*["']?\s*[:=]\s*["']?)[^\s"',;]+/gi,
  // A block of PEM.
  /-----BEGIN [^-]*-----[\s\S]*?(-----END [^-]*-----|$)/g,
  // Long random text. Digests of images and templates are hexadecimal with at most 64 digits, and stay.
  /(?<![\w/+=-])(?![0-9a-f]{1,64}(?![\w/+=-]))(?=[\w/+=-]*\d)(?=[\w/+=-]*[A-Z])[A-Za-z0-9+/=_-]{32,}/g,
]

/** Returns a text without what looks like a credential, and of a bounded length. */
export function scrubbed(text: string): string {
  const short = text.length > mostText ? `${text.slice(0, mostText)}...` : text
  return credentials.reduce((rest, pattern) => rest.replace(pattern, redacted), short)
}
