/**
 * Wall-clock time as the API's MicroTime, RFC 3339 with exactly six decimals: `2030-01-01T00:00:00.123000Z`.
 * The server refuses any other number of them.
 * @param micros microseconds to add, 0..999.
 */
export function microTime(ms: number, micros = 0): string {
  return `${new Date(ms).toISOString().slice(0, -1)}${String(micros).padStart(3, '0')}Z`
}
