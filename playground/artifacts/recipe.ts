export interface BuildContext {
  readonly signal: AbortSignal | undefined
  /** Output of the programs that the build runs goes here. */
  readonly logFile: string
  /** Shown behind the step's title. */
  detail(text: string): void
}

/** How to make one directory of files that is the same whenever its inputs are. */
export interface Recipe {
  readonly title: string
  /** Everything that the result depends on, as JSON; its hash names the result. */
  inputs(): Promise<unknown>
  /** Fills the directory. It is renamed to its final name only when this returns. */
  build(directory: string, context: BuildContext): Promise<void>
}
