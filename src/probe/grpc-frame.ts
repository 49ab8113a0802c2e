/** Encodes and decodes the two messages of grpc.health.v1.Health/Check and their gRPC frames. */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'

/** HealthCheckResponse.ServingStatus */
const statuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'] as const
export type ServingStatus = (typeof statuses)[number]

/** The only field of both messages. */
const fieldNumber = 1

/** Encodes HealthCheckRequest { string service = 1 } in its frame. */
export function encodeHealthRequest(service: string): Buffer {
  const writer = new BinaryWriter()
  if (service !== '') writer.tag(fieldNumber, WireType.LengthDelimited).string(service)
  const message = writer.finish()
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
  try {
    return statuses[statusIn(new BinaryReader(message))]
  } catch {
    // The reader throws on bytes that are no message.
    return undefined
  }
}

function statusIn(reader: BinaryReader): number {
  let status = 0
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag()
    if (field === fieldNumber && type === WireType.Varint) status = reader.int32()
    else reader.skip(type, field)
  }
  return status
}
