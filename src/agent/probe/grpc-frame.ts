/** Encodes and decodes the two messages of grpc.health.v1.Health/Check and their gRPC frames. */

/** HealthCheckResponse.ServingStatus */
const statuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'] as const
export type ServingStatus = (typeof statuses)[number]

/** Encodes HealthCheckRequest { string service = 1 } in its frame. */
export function encodeHealthRequest(service: string): Buffer {
  const name = Buffer.from(service, 'utf8')
  const message =
    name.length === 0 ? Buffer.alloc(0) : Buffer.concat([Buffer.from([0x0a]), varint(name.length), name])
  const header = Buffer.alloc(5)
  header.writeUInt32BE(message.length, 1)
  return Buffer.concat([header, message])
}

/** Decodes HealthCheckResponse { ServingStatus status = 1 }; undefined if the bytes are anything else. */
export function decodeHealthResponse(frame: Buffer): ServingStatus | undefined {
  if (frame.length < 5) return undefined
  // Compressed, although the request did not allow that.
  if (frame[0] !== 0) return undefined
  const message = frame.subarray(5)
  if (frame.readUInt32BE(1) !== message.length) return undefined
  let status = 0
  let at = 0
  while (at < message.length) {
    const key = readVarint(message, at)
    if (key === undefined) return undefined
    const field = Math.floor(key.value / 8)
    const wireType = key.value % 8
    at = key.next
    switch (wireType) {
      case 0: {
        const value = readVarint(message, at)
        if (value === undefined) return undefined
        if (field === 1) status = value.value
        at = value.next
        break
      }
      case 1:
        at += 8
        break
      case 2: {
        const length = readVarint(message, at)
        if (length === undefined) return undefined
        at = length.next + length.value
        break
      }
      case 5:
        at += 4
        break
      default:
        return undefined
    }
  }
  return at === message.length ? statuses[status] : undefined
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  return Buffer.from([...bytes, rest])
}

/**
 * Reads at most ten bytes, as protobuf specifies. Numbers above 2^53 lose their last digits, which are not used here.
 */
function readVarint(from: Buffer, start: number): { value: number; next: number } | undefined {
  let value = 0
  for (let at = start; at < start + 10; at += 1) {
    const byte = from[at]
    if (byte === undefined) return undefined
    value += (byte & 0x7f) * 2 ** (7 * (at - start))
    if (byte < 0x80) return { value, next: at + 1 }
  }
  return undefined
}
