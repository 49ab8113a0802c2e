/** gRPC probes: one call of grpc.health.v1.Health/Check over HTTP/2 without TLS, as the kubelet makes it. */
import { connect, constants, type IncomingHttpHeaders } from 'node:http2'
import { decodeHealthResponse, encodeHealthRequest } from './grpc-frame.ts'
import type { GrpcHandler } from './handler.ts'
import { failure, type ProbeResult, success } from './result.ts'

/** A correct answer has seven bytes. */
const maxAnswerBytes = 4096

export function probeGrpc(handler: GrpcHandler, address: string, signal: AbortSignal): Promise<ProbeResult> {
  return new Promise(resolve => {
    const host = address.includes(':') ? `[${address}]` : address
    const session = connect(`http://${host}:${handler.port}`)
    const end = (result: ProbeResult) => {
      signal.removeEventListener('abort', onAbort)
      resolve(result)
      session.destroy()
    }
    const onAbort = () => end(failure('cancelled'))
    session.on('error', error => end(failure(error.message)))
    session.on('close', () => end(failure('the connection was closed')))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) return onAbort()

    const stream = session.request({
      [constants.HTTP2_HEADER_METHOD]: 'POST',
      [constants.HTTP2_HEADER_PATH]: '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      'user-agent': 'kube-probe/understudy',
      te: 'trailers',
    })
    const chunks: Buffer[] = []
    let bytes = 0
    // An answer without a message has its status in the headers.
    let head: IncomingHttpHeaders = {}
    let trailers: IncomingHttpHeaders = {}
    stream.on('response', headers => {
      head = headers
    })
    stream.on('trailers', headers => {
      trailers = headers
    })
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > maxAnswerBytes) return end(failure('the answer is too long'))
      chunks.push(chunk)
    })
    stream.on('error', error => end(failure(error.message)))
    stream.on('end', () => end(judge(head, trailers, Buffer.concat(chunks))))
    stream.end(encodeHealthRequest(handler.service))
  })
}

function judge(head: IncomingHttpHeaders, trailers: IncomingHttpHeaders, body: Buffer): ProbeResult {
  if (Number(head[':status']) !== 200) return failure(`HTTP status ${head[':status']}`)
  const code = trailers['grpc-status'] ?? head['grpc-status']
  switch (code) {
    case '0':
      break
    case '12':
      return failure('the server has no service grpc.health.v1.Health')
    case undefined:
      return failure('the answer has no gRPC status')
    default:
      return failure(`gRPC status ${code}`)
  }
  const status = decodeHealthResponse(body)
  if (status === undefined) return failure('the answer is not a HealthCheckResponse')
  return status === 'SERVING' ? success : failure(`the service is ${status}`)
}
