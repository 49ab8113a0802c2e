/** Every failure of this directory that a caller can do something about. Callers decide by `code`, never by message. */

/**
 * | code | meaning | what to do |
 * |---|---|---|
 * | BadImage | a CRIU image is missing, cut off or says what cannot be | throw the dump away |
 * | BadManifest | a manifest cannot be read or contradicts itself | throw the generation away |
 * | BadDraft | a draft holds something that is not a plain file or a directory | throw the draft away |
 * | StoreFull | the budget has no room | keep fewer generations, or raise it; checkpoints pause until then |
 * | DiskFull | the budget of the node's disk has no room; what is in memory goes on | keep fewer generations, or raise it |
 * | DiskLow | the filesystem of the disk has too little left | make room on the node's disk |
 * | Superseded | this generation of this slot is complete already, or its draft is finished | nothing |
 * | NoSuchGeneration | it was never here, or is not any more | look for another |
 * | DeltaBaseMissing | the receiver has not the generation that the delta was made against | ask for the whole |
 * | Corrupt | a stream is cut off or broken, or a file is not what the manifest says | ask for the whole |
 */
export type CheckpointErrorCode =
  | 'BadImage'
  | 'BadManifest'
  | 'BadDraft'
  | 'StoreFull'
  | 'DiskFull'
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

/** Is `error` a CheckpointError, and if codes are given, of one of them? */
export function isCheckpointError(
  error: unknown,
  ...codes: readonly CheckpointErrorCode[]
): error is CheckpointError {
  return error instanceof CheckpointError && (codes.length === 0 || codes.includes(error.code))
}
