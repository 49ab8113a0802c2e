export interface BuildContext {
  readonly signal: AbortSignal | undefined
  /** File that gets the output of the programs that the build runs. */
  readonly logFile: string
  /** Shown behind the step's title. */
  detail(text: string): void
}

/** Describes how to make a directory of files. The same inputs give the same directory. */
export interface Recipe {
  readonly title: string
  /** Returns everything that the result depends on, as JSON; its hash names the result. */
  inputs(): Promise<unknown>
  /** Fills the directory. The caller renames it to its final name only after this returns. */
  build(directory: string, context: BuildContext): Promise<void>
}
