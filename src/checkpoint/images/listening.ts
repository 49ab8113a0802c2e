/** The addresses at which a saved application listens. */
import { addressOfWords, movedWords, movesOf } from './address-words.ts'
import { readImage } from './image-file.ts'
import { fileEntry } from './messages.ts'

/** CRIU's and the kernel's numbers. */
const stream = 1
const listening = 10
const ipv4 = 2
const ipv6 = 10

export interface ListeningAddress {
  readonly address: string
  readonly port: number
  /** True: an IPv6 socket that serves no clients of IPv4. */
  readonly onlyIPv6: boolean
}

/**
 * Returns each address once, as it is after a restore in another pod. Without sockets that are bound to a device: CRIU binds them to it after the address.
 * @throws CheckpointError BadImage
 */
export async function listeningAddresses(
  dir: string,
  { from, to }: { readonly from: string | undefined; readonly to: string },
): Promise<readonly ListeningAddress[]> {
  const moves = from === undefined ? [] : movesOf(from, to)
  const found = new Map<string, ListeningAddress>()
  for (const { isk } of await readImage(dir, 'files.img', 'files', fileEntry)) {
    if (isk?.type !== stream || isk.state !== listening || isk.ifname.length > 0) continue
    if (isk.family !== ipv4 && isk.family !== ipv6) continue
    const address = addressOfWords(movedWords(moves, isk.srcAddr) ?? isk.srcAddr)
    if (address === undefined) continue
    const one = { address, port: isk.srcPort, onlyIPv6: isk.family === ipv6 && isk.v6only }
    found.set(`${address} ${isk.srcPort}`, one)
  }
  return [...found.values()]
}
