/** Quotes a word so that a POSIX shell reads it back unchanged. */
export function quote(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

export function commandLine(argv: readonly string[]): string {
  return argv.map(quote).join(' ')
}
