/** Where traces go, by the flag and by the environment variables of OpenTelemetry. */

const path = 'v1/traces'

/**
 * Returns the URL of the traces of an OTLP endpoint: `http://collector:4318` stands for `http://collector:4318/v1/traces`.
 * @throws TypeError if it is no URL of HTTP.
 */
export function tracesUrl(endpoint: string): string {
  const url = URL.parse(endpoint)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '')
    throw new TypeError('must be a URL, for example http://collector.monitoring:4318')
  // `fetch` refuses them, and arguments are visible to every user who may list processes.
  if (url.username !== '' || url.password !== '')
    throw new TypeError('must not contain a password: use OTEL_EXPORTER_OTLP_HEADERS')
  if (!url.pathname.endsWith(`/${path}`)) url.pathname = `${url.pathname.replace(/\/+$/, '')}/${path}`
  return url.href
}

/** Parses `OTEL_EXPORTER_OTLP_HEADERS`: `name=value,name=value`, with percent-encoded values. Leaves out what is no header. */
export function headersIn(text: string | undefined): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  for (const part of (text ?? '').split(',')) {
    const [, name, value] = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*(.*?)\s*$/.exec(part) ?? []
    const decoded = value === undefined ? undefined : decode(value)
    if (name !== undefined && decoded !== undefined) headers[name.toLowerCase()] = decoded
  }
  return headers
}

/** Undefined: no header may have this value. */
function decode(value: string): string | undefined {
  try {
    const text = decodeURIComponent(value)
    return /^[\t\x20-\x7e]*$/.test(text) ? text : undefined
  } catch {
    return undefined
  }
}
