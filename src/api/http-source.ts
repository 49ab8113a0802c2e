/** Patterns for the fields of `checkpoint.http`; the CRD contains them too. */

/** A path with an optional query, as in a request line. */
export const statePath = '^/[!-"$-~]*$'
export const headerName = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
/** Visible characters with blanks between them: a line end would begin another header. */
export const headerValue = '^([!-~]([ \\t!-~]*[!-~])?)?$'

/** Headers that concern the connection or are derived from the body. */
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
