/** The files of the page, finished for browsers. */
export interface PageAssets {
  readonly script: string
  readonly style: string
}

/** Undefined in the sources: `build/cli.ts` puts the finished page in place of this file. */
export const embeddedPage: PageAssets | undefined = undefined
