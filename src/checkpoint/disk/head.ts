/** Description of a generation at the start of its sealed file: enough to choose among several files. */
import { type SlotKey, slotFieldsOf, slotKeyIn } from '../../api/slot-key.ts'
import { CheckpointError } from '../errors.ts'

export interface Head {
  readonly slot: SlotKey
  readonly epoch: number
  readonly generation: number
  /** RFC 3339, by the source's clock. */
  readonly takenAt: string
  /** Sum of all files of the generation. */
  readonly bytes: number
  /** Boot of the machine that wrote the file, and its uptime when the pod was stopped, ms. */
  readonly boot: string
  readonly stoppedUptimeMs: number
}

const longest = 4096

export function formatHead(head: Head): Buffer {
  const text = Buffer.from(JSON.stringify({ version: 1, ...head, slot: slotFieldsOf(head.slot) }))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(text.length)
  return Buffer.concat([length, text])
}

/**
 * Reads the head off a stream.
 * @returns the head, and the rest of the stream.
 * @throws CheckpointError Corrupt; the error of the stream.
 */
export async function takeHead(
  stream: AsyncGenerator<Buffer>,
): Promise<{ readonly head: Head; readonly rest: AsyncGenerator<Buffer> }> {
  let held = Buffer.alloc(0)
  const need = async (length: number) => {
    while (held.length < length) {
      const next = await stream.next()
      if (next.done === true) throw new CheckpointError('Corrupt', 'a sealed file ends within its head')
      held = Buffer.concat([held, next.value])
    }
  }
  await need(4)
  const length = held.readUInt32LE()
  if (length > longest) throw new CheckpointError('Corrupt', 'the head of a sealed file is too long')
  await need(4 + length)
  const head = parseHead(held.subarray(4, 4 + length).toString())
  const first = held.subarray(4 + length)
  const rest = async function* () {
    if (first.length > 0) yield first
    yield* stream
  }
  return { head, rest: rest() }
}

/** Checks only version and slot: the content is authentic, because its writer had the key. */
function parseHead(text: string): Head {
  let value: Head & { readonly version: number }
  try {
    value = JSON.parse(text) as typeof value
  } catch (error) {
    throw new CheckpointError('Corrupt', 'the head of a sealed file is not JSON', error)
  }
  if (value.version !== 1)
    throw new CheckpointError('Corrupt', `sealed files of version ${value.version} are unknown`)
  const slot = slotKeyIn(Object(value.slot))
  if (slot === undefined) throw new CheckpointError('Corrupt', 'the head of a sealed file names no slot')
  const { epoch, generation, takenAt, bytes, boot, stoppedUptimeMs } = value
  return { slot, epoch, generation, takenAt, bytes, boot, stoppedUptimeMs }
}
