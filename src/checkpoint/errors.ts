/** Every failure of this directory that a caller can handle. Callers decide by `code`, never by message. */

/**
 * | code | meaning | what to do |
 * |---|---|---|
 * | BadImage | a CRIU image is missing, truncated or impossible | discard the dump |
 * | BadManifest | a manifest cannot be read or contradicts itself | discard the generation |
 * | BadDraft | a draft holds something other than plain files and directories | discard the draft |
 * | StoreFull | the budget has no room | keep fewer generations, or raise it; checkpoints pause until then |
 * | DiskFull | the budget of the node's disk has no room; checkpoints in memory continue | keep fewer, or raise it |
 * | DiskShareFull | the namespace has its share of that budget; other namespaces are still written | keep fewer slots there, or raise budget or share |
 * | DiskLow | the filesystem of the disk has too little space left | make room on the node's disk |
 * | Superseded | this generation of this slot is complete already, or its draft is finished | nothing |
 * | NoSuchGeneration | the generation was never here, or was removed | look for another |
 * | DeltaBaseMissing | the receiver does not have the generation that the delta was made against | request the whole |
 * | Corrupt | a stream is truncated or broken, or a file differs from the manifest | request the whole |
 */
export type CheckpointErrorCode =
  | 'BadImage'
  | 'BadManifest'
  | 'BadDraft'
  | 'StoreFull'
  | 'DiskFull'
  | 'DiskShareFull'
  | 'DiskLow'
  | 'Superseded'
  | 'NoSuchGeneration'
  | 'DeltaBaseMissing'
  | 'Corrupt'

export class CheckpointError extends Error {
  override readonly name = 'CheckpointError'
  readonly code: CheckpointErrorCode

  constructor(code: CheckpointErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/** True if `error` is a CheckpointError and, if codes are given, has one of them. */
export function isCheckpointError(
  error: unknown,
  ...codes: readonly CheckpointErrorCode[]
): error is CheckpointError {
  return error instanceof CheckpointError && (codes.length === 0 || codes.includes(error.code))
}
