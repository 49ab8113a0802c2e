import { cpus, release, totalmem } from 'node:os'

/** What the figures were measured on, in one line. */
export function machineLine(): string {
  const gib = (totalmem() / 2 ** 30).toFixed(0)
  return `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'CPU'}, ${gib} GiB, Linux ${release()}`
}
