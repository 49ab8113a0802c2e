/** The logger of this kit; pino's logger fits as it is. */
type Write = (fields: Readonly<Record<string, unknown>>, message: string) => void

export interface Log {
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}

/** Drops everything. */
export const silentLog: Log = Object.freeze({ debug() {}, info() {}, warn() {}, error() {} })
