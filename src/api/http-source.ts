/** Forms of the fields of `checkpoint.http`; the CRD has them as patterns. */

/** A path with an optional query, as it stands in a request line. */
export const statePath = '^/[!-"$-~]*$'
export const headerName = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
/** Visible characters and blanks between them: no line ends, which would begin another header. */
export const headerValue = '^([!-~]([ \\t!-~]*[!-~])?)?$'

/** Headers that belong to the connection or are made from the body. */
const own = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
export const ownHeaders: readonly string[] = [...own]
export const isOwnHeader = (name: string): boolean => own.has(name.toLowerCase())
