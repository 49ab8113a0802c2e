/** A word that a POSIX shell reads back as it is. */
export function quote(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

export function commandLine(argv: readonly string[]): string {
  return argv.map(quote).join(' ')
}
