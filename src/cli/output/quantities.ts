/** Numbers for people. */

/** `0.8s`, `42s`, `17m`, `5h`, `3d`: an age, where only the order of magnitude matters. */
export function age(seconds: number): string {
  const value = Math.max(seconds, 0)
  if (value < 10) return `${value.toFixed(1)}s`
  if (value < 120) return `${Math.round(value)}s`
  if (value < 7_200) return `${Math.floor(value / 60)}m`
  if (value < 172_800) return `${Math.floor(value / 3_600)}h`
  return `${Math.floor(value / 86_400)}d`
}

/** Age of an instant; empty if the text is not a time. */
export function ageOf(instant: string | undefined, now: number): string {
  const at = Date.parse(instant ?? '')
  return Number.isNaN(at) ? '' : age((now - at) / 1000)
}

/** `7.3 ms`, `0.42 s`, `12 s`: a measured duration. */
export function duration(seconds: number): string {
  if (seconds < 0.1) return `${Number((seconds * 1000).toPrecision(2))} ms`
  return seconds < 10 ? `${seconds.toFixed(2)} s` : `${Math.round(seconds)} s`
}

const units = ['B', 'kB', 'MB', 'GB', 'TB'] as const

/** `3.1 MB`. */
export function bytes(count: number): string {
  let value = count
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}
