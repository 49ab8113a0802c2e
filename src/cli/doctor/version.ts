/** Tag of an image; undefined where there is none, or only a digest. */
export const tagOf = (image: string): string | undefined =>
  /^[^@]*?:([^/:@]+)$/.exec(image.split('@')[0] ?? '')?.[1]
