/** Eleventy has no types of its own: the parts that the site uses. */
declare module '@11ty/eleventy' {
  interface MarkdownLibrary {
    readonly core: {
      readonly ruler: {
        push(name: string, rule: (state: import('./markdown.ts').MarkdownState) => void): void
      }
    }
  }

  interface Config {
    addTemplate(path: string, content: string, data: Readonly<Record<string, unknown>>): void
    amendLibrary(name: 'md', change: (library: MarkdownLibrary) => void): void
  }

  export class Eleventy {
    constructor(
      input: string,
      output: string,
      options: {
        readonly quietMode: boolean
        readonly configPath: false
        readonly config: (config: Config) => object
      },
    )
    disableLogger(): void
    /** Renders all pages, and writes none. */
    toJSON(): Promise<readonly { readonly url: string; readonly content: string }[]>
  }
}
