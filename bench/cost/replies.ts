const carriageReturn = 0x0d
const dollar = 0x24
const minus = 0x2d

/** Counts Redis' replies, which may come in pieces: lines, and values of whatever bytes. */
export function createReplies(onReply: () => void): (chunk: Buffer) => void {
  /** Of a reply whose end has not come yet. */
  let rest = Buffer.alloc(0)
  /** Bytes of a value that are still to come, its end included. */
  let owed = 0
  return chunk => {
    let at = 0
    const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    rest = Buffer.alloc(0)
    while (at < data.length) {
      if (owed > 0) {
        const taken = Math.min(owed, data.length - at)
        owed -= taken
        at += taken
        if (owed === 0) onReply()
        continue
      }
      const end = data.indexOf(carriageReturn, at)
      if (end < 0 || end + 1 >= data.length) {
        rest = Buffer.from(data.subarray(at))
        return
      }
      if (data[at] === minus) throw new Error(data.toString('latin1', at, end))
      const length = data[at] === dollar ? Number(data.toString('latin1', at + 1, end)) : -1
      at = end + 2
      if (length < 0) onReply()
      else owed = length + 2
    }
  }
}
