import { createProgress } from '../../terminal/progress.ts'
import type { Terminal } from '../terminal.ts'

export interface RecordingTerminal extends Terminal {
  readonly written: string[]
  readonly told: string[]
  /** Calls of `redraw`. */
  readonly pictures: string[]
}

/** Records the output of a command, without colours. */
export function recordingTerminal(onPicture: () => void = () => undefined): RecordingTerminal {
  const written: string[] = []
  const told: string[] = []
  const pictures: string[] = []
  return {
    written,
    told,
    pictures,
    colour: false,
    choose: () => undefined,
    close: () => undefined,
    out: text => void written.push(text),
    err: text => void told.push(text),
    progress: createProgress({ write: text => told.push(text.trimEnd()) }),
    redraw: text => {
      pictures.push(text)
      onPicture()
    },
  }
}
