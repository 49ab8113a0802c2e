import { open, stat } from 'node:fs/promises'

/** What the kubelet's relist (PLEG) told the kubelet about a container. */
export interface PlegEvent {
  /** Unix ms, with µs in the fraction: when the kubelet took the event up. */
  readonly at: number
  readonly podUid: string
  readonly type: string
  readonly containerId: string
}

const line =
  /^I(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6}) .*"SyncLoop \(PLEG\): event for pod" .*event=(\{.*\})\s*$/

/**
 * A line of the kubelet's log (klog, verbosity 2 and above), or undefined for all others. klog writes local time
 * without a year.
 * @param now Unix ms; tells the year
 */
export function parsePlegLine(text: string, now: number): PlegEvent | undefined {
  const match = line.exec(text)
  if (match === null) return undefined
  const [, month = '', day = '', hour = '', minute = '', second = '', micros = '', event = ''] = match
  const inYear = (year: number) =>
    new Date(year, Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second)).getTime()
  const year = new Date(now).getFullYear()
  // On New Year's Day yesterday's line would be a year ahead.
  const whole = inYear(year) > now + 86_400_000 ? inYear(year - 1) : inYear(year)
  const { ID, Type, Data } = JSON.parse(event) as { ID: string; Type: string; Data: unknown }
  return { at: whole + Number(micros) / 1000, podUid: ID, type: Type, containerId: String(Data) }
}

/** PLEG events in a kubelet's log from a position on. */
export interface KubeletLog {
  skip(): Promise<void>
  read(now: number): Promise<PlegEvent[]>
}

export function openKubeletLog(path: string): KubeletLog {
  let offset = 0
  return {
    async skip() {
      offset = (await stat(path)).size
    },
    async read(now) {
      const file = await open(path)
      try {
        const { size } = await file.stat()
        const bytes = Buffer.alloc(Math.max(0, size - offset))
        await file.read(bytes, 0, bytes.length, offset)
        return bytes
          .toString()
          .split('\n')
          .flatMap(text => parsePlegLine(text, now) ?? [])
      } finally {
        await file.close()
      }
    },
  }
}
